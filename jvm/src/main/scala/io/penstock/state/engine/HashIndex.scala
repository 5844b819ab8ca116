package io.penstock.state.engine

import scala.annotation.nowarn

import org.apache.spark.unsafe.Platform

import KeyIndex._

/**
 * Hash table with open addressing and linear probing. A slot holds the hash of the key in its upper half and the
 * reference plus one in its lower half; a free slot is 0.
 */
final class HashIndex(arena: Arena) extends KeyIndex {
  private var slots = new Array[Long](HashIndex.InitialSlots)
  private var count = 0
  // Never read. The assignment keeps the compiler from removing the reads in `fetch`.
  @nowarn("msg=never used")
  private var fetched = 0L

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

  /**
   * Adds records of new keys.
   *
   * @param hashedRefs
   *   Records as in [[KeyIndex.hashedRefs]], of which the first `n` are added
   * @return
   *   Number of records that were added: fewer than `n` if the key of the next record exists already
   */
  def addAll(hashedRefs: Array[Long], n: Int): Int = {
    expect(count + n)
    var added = 0
    var end = 0
    while (end < n) {
      end = math.min(n, end + HashIndex.FetchedAtOnce)
      fetched = fetch(hashedRefs, added, end)
      added = addUntil(hashedRefs, added, end)
      if (added < end) end = n
    }
    count += added
    added
  }

  /** A copy of the slots, a long each; None if there are more than [[HashIndex.MaxSlotsPerKey]] slots per key. */
  def denseSlots: Option[Array[Byte]] = Option.when(slots.length <= HashIndex.MaxSlotsPerKey * count.toLong) {
    val bytes = new Array[Byte](8 * slots.length)
    Platform.copyMemory(slots, Platform.LONG_ARRAY_OFFSET, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length.toLong)
    bytes
  }

  /**
   * Takes over the slots of another index of the same records, which lie at the same positions in memory. Checks that a
   * lookup by hash reaches each slot and that no record occurs twice. Does not check that keys are distinct.
   *
   * @param table
   *   Slots, which this index keeps. Their number is a power of two and at least one is free
   * @param starts
   *   One bit for each position in memory, set where a record starts. The bits of the records found are cleared
   * @return
   *   A slot with an invalid entry, in which case this index must not be used, or -1 if all entries are valid
   */
  def adopt(table: Array[Long], starts: Array[Long]): Int = {
    val refs = new Array[Int](table.length)
    val mask = table.length - 1
    // Number of occupied slots directly before this one. The last slot is the one before the first.
    var run = 0
    while (run < mask && table(mask - run) != 0L) run += 1
    var found = 0
    var i = 0
    // No branch depends on whether a slot is occupied, because the processor cannot predict it.
    while (i < table.length) {
      val e = table(i)
      val isOccupied = ((e | -e) >>> 63).toInt
      val distance = (i - HashIndex.spread((e >>> 32).toInt)) & mask
      if ((((run - distance) >>> 31) & isOccupied) != 0) return i
      refs(found) = e.toInt - 1
      found += isOccupied
      run = (run + 1) & -isOccupied
      i += 1
    }
    val unknown = clearAll(refs, found, starts)
    if (unknown < found) return table.indices.filter(table(_) != 0L)(unknown)
    slots = table
    count = found
    -1
  }

  /** Clears the bits of `n` references and stops at the first whose bit is not set. Returns the number cleared. */
  private def clearAll(refs: Array[Int], n: Int, bits: Array[Long]): Int = {
    var cleared = 0
    while (cleared < n) {
      val ref = refs(cleared)
      val word = ref >>> 6
      if (word >= bits.length || (bits(word) & (1L << ref)) == 0L) return cleared
      bits(word) &= ~(1L << ref)
      cleared += 1
    }
    n
  }

  /** Reads the slots where records are about to be looked up. Memory loads many slots in the time of a single one. */
  private def fetch(hashedRefs: Array[Long], from: Int, until: Int): Long = {
    val table = slots
    val mask = table.length - 1
    var seen = 0L
    var i = from
    while (i < until) {
      seen |= table(HashIndex.spread((hashedRefs(i) >>> 32).toInt) & mask)
      i += 1
    }
    seen
  }

  private def addUntil(hashedRefs: Array[Long], from: Int, until: Int): Int = {
    val table = slots
    val mask = table.length - 1
    var added = from
    while (added < until) {
      // A slot holds the reference plus one, which never overflows into the hash.
      val e = hashedRefs(added) + 1L
      val hash = (e >>> 32).toInt
      var i = HashIndex.spread(hash) & mask
      while (table(i) != 0L) {
        if ((table(i) >>> 32).toInt == hash && haveSameKey(table(i).toInt - 1, e.toInt - 1)) return added
        i = (i + 1) & mask
      }
      table(i) = e
      added += 1
    }
    added
  }

  /** Makes room for a total of `keys` keys. */
  def expect(keys: Int): Unit = {
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
    val entries = hashedEntries
    val out = new Array[Int](entries.length)
    var i = 0
    while (i < out.length) {
      out(i) = entries(i).toInt
      i += 1
    }
    out
  }

  override def hashedRefs: Option[Array[Long]] = Some(hashedEntries)

  private def hashedEntries: Array[Long] = {
    val table = slots
    val out = new Array[Long](count)
    var n = 0
    var i = 0
    while (i < table.length && n < out.length) {
      if (table(i) != 0L) {
        out(n) = table(i) - 1L
        n += 1
      }
      i += 1
    }
    if (n == out.length) out else java.util.Arrays.copyOf(out, n)
  }

  private def entry(hash: Int, ref: Int): Long = (hash.toLong << 32) | ((ref + 1) & 0xffffffffL)

  /** The slot of the key, or the complement of the slot where it would be inserted. */
  private def locate(table: Array[Long], key: KeyBytes, hash: Int): Int = {
    val mask = table.length - 1
    var i = HashIndex.spread(hash) & mask
    while (table(i) != 0L) {
      val e = table(i)
      if ((e >>> 32).toInt == hash && isKey(e.toInt - 1, key.base, key.offset, key.length)) return i
      i = (i + 1) & mask
    }
    ~i
  }

  private def isKey(ref: Int, key: AnyRef, keyAt: Long, length: Int): Boolean = {
    val page = arena.page(ref)
    val offset = arena.offset(ref)
    keyLength(page, offset) == length && KeyBytes.sameBytes(page, keyAddress(offset), key, keyAt, length)
  }

  private def haveSameKey(a: Int, b: Int): Boolean = {
    val page = arena.page(b)
    val offset = arena.offset(b)
    isKey(a, page, keyAddress(offset), keyLength(page, offset))
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
      val ideal = HashIndex.spread((slots(i) >>> 32).toInt) & mask
      if (((i - ideal) & mask) >= ((i - gap) & mask)) {
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
  private val FetchedAtOnce = 64

  /**
   * Most slots per key for which storing slots is worth the room. With hashes a reader must find a slot for each key.
   */
  val MaxSlotsPerKey = 3

  /** Mixes the upper bits into the lower bits, which select the slot. */
  private def spread(hash: Int): Int = hash ^ (hash >>> 16)
}
