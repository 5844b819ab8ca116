package io.penstock.state.engine

import KeyIndex._

/** Open addressing with linear probing. A slot holds the key's hash above and the reference plus one below; 0 is free. */
final class HashIndex(arena: Arena) extends KeyIndex {
  private var slots = new Array[Long](HashIndex.InitialSlots)
  private var count = 0

  override def size: Int = count

  override def memoryBytes: Long = 8L * slots.length

  override def find(key: KeyBytes): Int = {
    val table = slots
    val slot = locate(table, key, key.hash)
    if (slot < 0) Absent else table(slot).toInt - 1
  }

  override def put(key: KeyBytes, ref: Int): Int = {
    val hash = key.hash
    val slot = locate(slots, key, hash)
    if (slot >= 0) {
      val previous = slots(slot).toInt - 1
      slots(slot) = entry(hash, ref)
      previous
    } else {
      occupy(~slot, entry(hash, ref))
      Absent
    }
  }

  override def add(key: KeyBytes, ref: Int): Boolean = {
    val hash = key.hash
    val slot = locate(slots, key, hash)
    if (slot < 0) occupy(~slot, entry(hash, ref))
    slot < 0
  }

  override def expect(keys: Int): Unit = {
    var size = slots.length
    while (keys * 4L > size * 3L) size *= 2
    if (size > slots.length) resize(size)
  }

  override def remove(key: KeyBytes): Int = {
    val slot = locate(slots, key, key.hash)
    if (slot < 0) Absent
    else {
      val previous = slots(slot).toInt - 1
      closeGap(slot)
      count -= 1
      previous
    }
  }

  override def refs: Array[Int] = {
    val entries = copied
    val out = new Array[Int](entries.length)
    var i = 0
    while (i < out.length) {
      out(i) = entries(i).toInt
      i += 1
    }
    out
  }

  override def hashedRefs: Option[Array[Long]] = Some(copied)

  private def copied: Array[Long] = {
    val table = slots
    val out = new Array[Long](count)
    var n = 0
    var i = 0
    while (i < table.length && n < out.length) {
      if (table(i) != 0L) {
        // The reference is stored plus one, and never overflows into the hash.
        out(n) = table(i) - 1L
        n += 1
      }
      i += 1
    }
    if (n == out.length) out else java.util.Arrays.copyOf(out, n)
  }

  private def entry(hash: Int, ref: Int): Long = (hash.toLong << 32) | ((ref + 1) & 0xffffffffL)

  /** The key's slot, or the complement of the slot where it belongs. */
  private def locate(table: Array[Long], key: KeyBytes, hash: Int): Int = {
    val mask = table.length - 1
    var i = HashIndex.spread(hash) & mask
    while (table(i) != 0L) {
      val e = table(i)
      if ((e >>> 32).toInt == hash && isKey(e.toInt - 1, key)) return i
      i = (i + 1) & mask
    }
    ~i
  }

  private def isKey(ref: Int, key: KeyBytes): Boolean = {
    val page = arena.page(ref)
    val offset = arena.offset(ref)
    keyLength(page, offset) == key.length &&
    KeyBytes.sameBytes(page, keyAddress(offset), key.base, key.offset, key.length)
  }

  private def occupy(slot: Int, e: Long): Unit = {
    slots(slot) = e
    count += 1
    if (count * 4L > slots.length * 3L) resize(slots.length * 2)
  }

  private def resize(size: Int): Unit = {
    val old = slots
    val table = new Array[Long](size)
    val mask = size - 1
    var from = 0
    while (from < old.length) {
      val e = old(from)
      if (e != 0L) {
        var i = HashIndex.spread((e >>> 32).toInt) & mask
        while (table(i) != 0L) i = (i + 1) & mask
        table(i) = e
      }
      from += 1
    }
    slots = table
  }

  /** Moves later entries of the probe sequence back, so that no tombstone is needed. */
  private def closeGap(freed: Int): Unit = {
    val mask = slots.length - 1
    var gap = freed
    var i = (gap + 1) & mask
    while (slots(i) != 0L) {
      val home = HashIndex.spread((slots(i) >>> 32).toInt) & mask
      if (((i - home) & mask) >= ((i - gap) & mask)) {
        slots(gap) = slots(i)
        gap = i
      }
      i = (i + 1) & mask
    }
    slots(gap) = 0L
  }
}

object HashIndex {
  private val InitialSlots = 8

  /** The low bits pick the slot. */
  private def spread(hash: Int): Int = hash ^ (hash >>> 16)
}
