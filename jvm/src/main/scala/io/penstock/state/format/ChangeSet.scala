package io.penstock.state.format

import scala.collection.mutable

import org.apache.spark.unsafe.Platform

/** Traits of a column family that determine its stored form. */
final case class FamilyTraits(ordered: Boolean, multiValued: Boolean)

/** Receives the changes of one shard in the order in which they apply. Addresses are those of Spark's `Platform`. */
trait ChangeSink {
  def removeFamily(name: String): Unit

  /**
   * The sink for changes of a family, or null if the family exists with other traits.
   *
   * @param moved
   *   Whether the changes only move keys between this shard and another one, without changing the state of the keys
   */
  def family(name: String, traits: FamilyTraits, moved: Boolean): FamilyChangeSink
}

trait FamilyChangeSink {
  def put(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit
  def append(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit
  def remove(key: AnyRef, keyAt: Long, keyLength: Int): Unit
}

/**
 * The changes of one shard as bytes. Sections of changelogs and prepared deltas consist of them. Specified in
 * docs/PROTOCOL.md, "Change set".
 */
object ChangeSet {
  private val Ordered = 1
  private val MultiValued = 2
  private val Removed = 4
  private val Moved = 8
  private val Put = 0
  private val Remove = 1
  private val Append = 2

  /** The flags that encode the traits of a family. */
  def flags(traits: FamilyTraits): Int =
    (if (traits.ordered) Ordered else 0) | (if (traits.multiValued) MultiValued else 0)

  /** Reads the flags of a family: its traits and any of the flags in `more`. */
  private[state] def readFlags(in: ByteSource, more: Int): Int = {
    val at = in.consumed
    val flags = in.getByte()
    if ((flags & ~(Ordered | MultiValued | more)) != 0) throw new MalformedData(s"unknown family flags $flags", at)
    flags
  }

  private[state] def traitsOf(flags: Int): FamilyTraits =
    FamilyTraits((flags & Ordered) != 0, (flags & MultiValued) != 0)

  /** Writes one change set: first all families, then all changes, each in the order of the calls. */
  final class Writer(out: ByteSink) {
    private val records = new ByteSink(256)
    private val families = mutable.ArrayBuffer[(String, Int)]()

    def removeFamily(name: String): Unit = families += ((name, Removed))

    /** Starts a family, to which all later changes belong. Moved families must come before the others. */
    def family(name: String, traits: FamilyTraits, moved: Boolean = false): Unit =
      families += ((name, flags(traits) | (if (moved) Moved else 0)))

    def put(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit = {
      change(Put, key, keyAt, keyLength)
      records.putVarint(valueLength)
      records.putBytes(value, valueAt, valueLength)
    }

    def append(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit = {
      change(Append, key, keyAt, keyLength)
      records.putVarint(valueLength)
      records.putBytes(value, valueAt, valueLength)
    }

    def remove(key: AnyRef, keyAt: Long, keyLength: Int): Unit = change(Remove, key, keyAt, keyLength)

    def isEmpty: Boolean = families.isEmpty

    /** Ends the change set and returns its size in bytes. */
    def finish(): Int = {
      val before = out.size
      out.putVarint(families.size)
      families.foreach { case (name, flags) =>
        out.putByte(flags)
        out.putString(name)
      }
      out.putBytes(records.array, Platform.BYTE_ARRAY_OFFSET, records.size)
      families.clear()
      records.clear()
      out.size - before
    }

    private def change(op: Int, key: AnyRef, keyAt: Long, keyLength: Int): Unit = {
      records.putVarint(((families.size - 1) << 2) | op)
      records.putVarint(keyLength)
      records.putBytes(key, keyAt, keyLength)
    }
  }

  /**
   * Applies a change set.
   *
   * @throws MalformedData
   *   If the bytes are not a change set or do not fit the families of the sink, which may have applied some of the
   *   changes
   */
  def read(bytes: Array[Byte], offset: Int, length: Int, sink: ChangeSink): Unit = {
    val in = new ByteSource(bytes, offset, offset + length)
    val count = in.getCount("number of families", in.remaining / 2)
    val families = new Array[FamilyChangeSink](count)
    val multiValued = new Array[Boolean](count)
    var i = 0
    while (i < count) {
      val at = in.consumed
      val flags = readFlags(in, Removed | Moved)
      val name = in.getString()
      if ((flags & Removed) != 0) sink.removeFamily(name)
      else {
        val traits = traitsOf(flags)
        multiValued(i) = traits.multiValued
        families(i) = sink.family(name, traits, (flags & Moved) != 0)
        if (families(i) == null) {
          throw new MalformedData(s"family $name has flags $flags, but had other flags before", at)
        }
      }
      i += 1
    }
    while (in.remaining > 0) {
      val at = in.consumed
      val tag = in.getVarint()
      val index = tag >>> 2
      if (index >= count || families(index.toInt) == null) {
        throw new MalformedData(s"a change refers to family $index, which is not declared", at)
      }
      val family = families(index.toInt)
      val isMultiValued = multiValued(index.toInt)
      val keyLength = in.getCount("length of a key", in.remaining)
      val keyAt = Platform.BYTE_ARRAY_OFFSET.toLong + in.skip(keyLength)
      (tag & 3).toInt match {
        case Remove => family.remove(bytes, keyAt, keyLength)
        case op if op == Put || (op == Append && isMultiValued) =>
          val valueLength = in.getCount("length of a value", in.remaining)
          val value = in.skip(valueLength)
          // Checked here once, so that later iterations over the values need no checks.
          if (isMultiValued) checkValues(bytes, value, value + valueLength, offset)
          val valueAt = Platform.BYTE_ARRAY_OFFSET.toLong + value
          if (op == Put) family.put(bytes, keyAt, keyLength, bytes, valueAt, valueLength)
          else family.append(bytes, keyAt, keyLength, bytes, valueAt, valueLength)
        case op =>
          val traits = if (isMultiValued) "multi-valued" else "single-valued"
          throw new MalformedData(s"a change of kind $op is not allowed in a $traits family", at)
      }
    }
  }

  /**
   * Checks that the values of a multi-valued record, each preceded by its length, fill the range from `start` to `end`.
   *
   * @param offset
   *   Position in `bytes` that error messages count from
   */
  def checkValues(bytes: Array[Byte], start: Int, end: Int, offset: Int): Unit = {
    var at = start
    while (at < end) {
      val room = end - at - 4
      val length = if (room < 0) -1 else Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + at)
      if (length < 0 || length > room) {
        throw new MalformedData(
          s"a value of a multi-valued family does not fit: ${end - at} bytes are left for it",
          at - offset
        )
      }
      at += 4 + length
    }
  }
}
