package io.penstock.state.format

import scala.collection.mutable

import org.apache.spark.unsafe.Platform

/** Traits of a column family that its stored form depends on. */
final case class FamilyTraits(ordered: Boolean, multiValued: Boolean)

/** Receives the changes of one shard in the order in which they are to be applied. Addresses as Platform counts. */
trait ChangeSink {
  def removeFamily(name: String): Unit
  def family(name: String, traits: FamilyTraits): FamilyChangeSink
}

trait FamilyChangeSink {
  def put(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit
  def append(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit
  def remove(key: AnyRef, keyAt: Long, keyLength: Int): Unit
}

/**
 * The changes of one shard as bytes: what a changelog section, a snapshot section (puts only) and a prepared delta hold.
 * Specified in docs/PROTOCOL.md, "Change set".
 */
object ChangeSet {
  private val Ordered = 1
  private val MultiValued = 2
  private val Removed = 4
  private val Put = 0
  private val Remove = 1
  private val Append = 2

  /** Writes one change set; families first, each with its changes, in the order of the calls. */
  final class Writer(out: ByteSink) {
    private val records = new ByteSink(256)
    private val families = mutable.ArrayBuffer[(String, Int)]()

    def removeFamily(name: String): Unit = families += ((name, Removed))

    /** Later changes belong to this family. */
    def family(name: String, traits: FamilyTraits): Unit =
      families += ((name, (if (traits.ordered) Ordered else 0) | (if (traits.multiValued) MultiValued else 0)))

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
   *   where the bytes are not a change set; the sink may then have taken some of the changes
   */
  def read(bytes: Array[Byte], offset: Int, length: Int, sink: ChangeSink): Unit = {
    val in = new ByteSource(bytes, offset, offset + length)
    val families = Array.fill(in.getCount("number of families", length)) {
      val flags = in.getByte()
      if ((flags & ~(Ordered | MultiValued | Removed)) != 0) throw new MalformedData(s"unknown family flags $flags")
      val name = in.getString()
      if ((flags & Removed) != 0) {
        sink.removeFamily(name)
        null
      } else sink.family(name, FamilyTraits((flags & Ordered) != 0, (flags & MultiValued) != 0))
    }
    while (in.remaining > 0) {
      val tag = in.getVarint()
      val index = tag >>> 2
      if (index >= families.length || families(index.toInt) == null) {
        throw new MalformedData(s"a change of family $index, which is not declared, at byte ${in.consumed}")
      }
      val family = families(index.toInt)
      val keyLength = in.getCount("key length", in.remaining)
      val keyAt = Platform.BYTE_ARRAY_OFFSET.toLong + in.skip(keyLength)
      (tag & 3).toInt match {
        case Remove => family.remove(bytes, keyAt, keyLength)
        case op @ (Put | Append) =>
          val valueLength = in.getCount("value length", in.remaining)
          val valueAt = Platform.BYTE_ARRAY_OFFSET.toLong + in.skip(valueLength)
          if (op == Put) family.put(bytes, keyAt, keyLength, bytes, valueAt, valueLength)
          else family.append(bytes, keyAt, keyLength, bytes, valueAt, valueLength)
        case op => throw new MalformedData(s"unknown kind of change $op at byte ${in.consumed}")
      }
    }
  }
}
