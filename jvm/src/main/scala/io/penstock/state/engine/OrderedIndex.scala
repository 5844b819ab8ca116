package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

import KeyIndex._

/**
 * Index of keys in unsigned byte order: a sorted list of sorted blocks of references, that is, a B-tree of two levels.
 * A block is split in half when it is full and removed when it is empty.
 */
final class OrderedIndex(arena: Arena) extends KeyIndex {
  import OrderedIndex._

  private var blocks = Array(new Array[Int](BlockSize))
  private var counts = Array(0)
  private var blockCount = 1
  private var total = 0

  override def size: Int = total

  override def memoryBytes: Long = blockCount.toLong * (BlockSize * 4 + 24) + blocks.length * 12L

  override def find(key: KeyBytes): Int = {
    val b = blockOf(key)
    val i = search(blocks(b), counts(b), key)
    if (i < 0) Absent else blocks(b)(i)
  }

  override def put(key: KeyBytes, ref: Int): Int = {
    val b = blockOf(key)
    val i = search(blocks(b), counts(b), key)
    if (i >= 0) {
      val previous = blocks(b)(i)
      blocks(b)(i) = ref
      previous
    } else {
      insert(b, ~i, ref)
      total += 1
      Absent
    }
  }

  /**
   * Adds `ref` as the record of a key that is greater than all others.
   *
   * @return
   *   Whether the record was added; false if the key is not greater than all others, and then nothing changes
   */
  def append(key: KeyBytes, ref: Int): Boolean = {
    val last = blockCount - 1
    val above = total == 0 || compareToRecord(key, blocks(last)(counts(last) - 1)) > 0
    if (above) {
      insert(last, counts(last), ref)
      total += 1
    }
    above
  }

  override def remove(key: KeyBytes): Int = {
    val b = blockOf(key)
    val i = search(blocks(b), counts(b), key)
    if (i < 0) Absent
    else {
      val previous = blocks(b)(i)
      System.arraycopy(blocks(b), i + 1, blocks(b), i, counts(b) - i - 1)
      counts(b) -= 1
      total -= 1
      if (counts(b) == 0 && blockCount > 1) dropBlock(b)
      previous
    }
  }

  override def refs: Array[Int] = {
    val out = Array.newBuilder[Int]
    out.sizeHint(total)
    val c = first
    while (c.valid) {
      out += c.ref
      c.advance()
    }
    out.result()
  }

  def first: Cursor = new Cursor(0, 0)

  /** Cursor at the first key that is not below the given one. */
  def seek(key: KeyBytes): Cursor = {
    val b = blockOf(key)
    val i = search(blocks(b), counts(b), key)
    new Cursor(b, if (i < 0) ~i else i)
  }

  /** Iterates in ascending order. It can be used until the index changes. */
  final class Cursor(private var block: Int, private var index: Int) {
    skipEmpty()

    def valid: Boolean = block < blockCount

    def ref: Int = blocks(block)(index)

    def advance(): Unit = {
      index += 1
      skipEmpty()
    }

    private def skipEmpty(): Unit = while (block < blockCount && index >= counts(block)) {
      block += 1
      index = 0
    }
  }

  /** The last block whose first key is not above the given one. */
  private def blockOf(key: KeyBytes): Int = {
    var low = 0
    var high = blockCount - 1
    while (low < high) {
      val mid = (low + high + 1) >>> 1
      if (compareToRecord(key, blocks(mid)(0)) >= 0) low = mid else high = mid - 1
    }
    low
  }

  private def search(block: Array[Int], count: Int, key: KeyBytes): Int = {
    var low = 0
    var high = count - 1
    while (low <= high) {
      val mid = (low + high) >>> 1
      val c = compareToRecord(key, block(mid))
      if (c == 0) return mid
      if (c > 0) low = mid + 1 else high = mid - 1
    }
    ~low
  }

  private def compareToRecord(key: KeyBytes, ref: Int): Int = {
    val page = arena.page(ref)
    val offset = arena.offset(ref)
    KeyBytes.compare(key.base, key.offset, key.length, page, keyAddress(offset), keyLength(page, offset))
  }

  private def insert(b: Int, i: Int, ref: Int): Unit = {
    if (counts(b) < BlockSize) {
      System.arraycopy(blocks(b), i, blocks(b), i + 1, counts(b) - i)
      blocks(b)(i) = ref
      counts(b) += 1
    } else {
      // Ascending keys, such as timestamps, would leave half-full blocks behind. At the end, start a new block instead.
      val atEnd = b == blockCount - 1 && i == BlockSize
      val keep = if (atEnd) BlockSize else BlockSize / 2
      val right = new Array[Int](BlockSize)
      System.arraycopy(blocks(b), keep, right, 0, BlockSize - keep)
      addBlock(b + 1, right, BlockSize - keep)
      counts(b) = keep
      if (i <= keep && !atEnd) insert(b, i, ref) else insert(b + 1, i - keep, ref)
    }
  }

  private def addBlock(at: Int, block: Array[Int], count: Int): Unit = {
    if (blockCount == blocks.length) {
      blocks = java.util.Arrays.copyOf(blocks, blockCount * 2)
      counts = java.util.Arrays.copyOf(counts, blockCount * 2)
    }
    System.arraycopy(blocks, at, blocks, at + 1, blockCount - at)
    System.arraycopy(counts, at, counts, at + 1, blockCount - at)
    blocks(at) = block
    counts(at) = count
    blockCount += 1
  }

  private def dropBlock(at: Int): Unit = {
    System.arraycopy(blocks, at + 1, blocks, at, blockCount - at - 1)
    System.arraycopy(counts, at + 1, counts, at, blockCount - at - 1)
    blockCount -= 1
    blocks(blockCount) = null
  }
}

object OrderedIndex {
  private val BlockSize = 64

  /** Whether the record's key starts with the prefix. */
  def startsWith(arena: Arena, ref: Int, prefix: Array[Byte]): Boolean = {
    val page = arena.page(ref)
    val offset = arena.offset(ref)
    keyLength(page, offset) >= prefix.length &&
    KeyBytes.sameBytes(page, keyAddress(offset), prefix, Platform.BYTE_ARRAY_OFFSET, prefix.length)
  }

  /** Whether the record's key lies below the bound. */
  def isBelow(arena: Arena, ref: Int, bound: Array[Byte]): Boolean = {
    val page = arena.page(ref)
    val offset = arena.offset(ref)
    KeyBytes.compare(
      page,
      keyAddress(offset),
      keyLength(page, offset),
      bound,
      Platform.BYTE_ARRAY_OFFSET,
      bound.length
    ) < 0
  }
}
