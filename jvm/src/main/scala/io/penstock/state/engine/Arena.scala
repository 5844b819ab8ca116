package io.penstock.state.engine

import io.penstock.errors.PenstockException

/**
 * Append-only memory for records, in pages. A record is identified by an int reference. It never moves and never
 * changes once written, so that a late reader (an attempt that lost) reads old bytes and never those of another record.
 * Space is reclaimed by copying the live records into a new arena.
 *
 * Pages are heap arrays. The garbage collector frees a page after its last reader has gone, and does not scan its
 * content. References grow with time: of two records of one arena, the younger one has the larger reference.
 */
final class Arena {
  import Arena._

  private var pages = new Array[Array[Byte]](2)
  // Used bytes of each page but the last, whose used bytes are `position`.
  private var usedBytes = new Array[Int](2)
  private var pageCount = 0
  private var position = 0
  private var capacity = 0L

  /**
   * Allocates room for one record.
   *
   * @param bytes
   *   Size of the record
   * @return
   *   Reference of the record, whose room starts at `offset(ref)` of `page(ref)`
   */
  def allocate(bytes: Int): Int = {
    val rounded = room(bytes)
    if (pageCount == 0 || position + rounded > math.min(pages(pageCount - 1).length, PageBytes)) addPage(rounded)
    val ref = ((pageCount - 1) << UnitsPerPageBits) | (position >> UnitBits)
    position += rounded
    ref
  }

  /**
   * Adds a page that is full of records. Records that are allocated later go to other pages.
   *
   * @return
   *   Reference of the first byte of the page
   */
  def adopt(page: Array[Byte]): Int = {
    add(page)
    position = page.length
    (pageCount - 1) << UnitsPerPageBits
  }

  /** Lower bound of the references of future records. All existing records have smaller references. */
  def watermark: Int =
    if (pageCount == 0) 0
    // A record that is larger than `PageBytes` has a page of its own.
    else ((pageCount - 1) << UnitsPerPageBits) + (math.min(position, PageBytes) >> UnitBits)

  def page(ref: Int): Array[Byte] = pages(pageNumber(ref))

  /** Index of the record's first byte in its page. */
  def offset(ref: Int): Int = offsetOf(ref)

  /** The current pages. Records in them do not change, whatever is allocated later. */
  private[engine] def heldPages: Array[Array[Byte]] = java.util.Arrays.copyOf(pages, pageCount)

  /** Number of used bytes in each of these pages. */
  private[engine] def heldBytes: Array[Int] = {
    val bytes = java.util.Arrays.copyOf(usedBytes, pageCount)
    if (pageCount > 0) bytes(pageCount - 1) = position
    bytes
  }

  /** Size of all pages in bytes, including unused room. */
  def capacityBytes: Long = capacity

  private def addPage(atLeast: Int): Unit = {
    val size = math.max(math.min(PageBytes, FirstPageBytes << math.min(pageCount, 16)), atLeast)
    add(new Array[Byte](size))
    position = 0
  }

  private def add(page: Array[Byte]): Unit = {
    if (pageCount == MaxPages) {
      throw new PenstockException(
        "PENSTOCK_SHARD_TOO_LARGE",
        s"one column family of one shard holds more than ${MaxPages.toLong * PageBytes / (1L << 30)} GiB; " +
          "start a new checkpoint with a larger spark.penstock.shards"
      )
    }
    if (pageCount == pages.length) {
      pages = java.util.Arrays.copyOf(pages, pageCount * 2)
      usedBytes = java.util.Arrays.copyOf(usedBytes, pageCount * 2)
    }
    if (pageCount > 0) usedBytes(pageCount - 1) = position
    pages(pageCount) = page
    pageCount += 1
    capacity += page.length
  }
}

object Arena {
  private val UnitBits = 3
  private val UnitBytes = 1 << UnitBits
  private val PageBits = 16

  /** Maximum size of a page that holds more than one record. */
  val PageBytes: Int = 1 << PageBits
  private val UnitsPerPageBits = PageBits - UnitBits
  private val UnitsPerPage = 1 << UnitsPerPageBits
  private val MaxPages = 1 << (31 - UnitsPerPageBits)
  private val FirstPageBytes = 512

  /** Bytes that a record of the given size takes in a page, including alignment. */
  def room(bytes: Int): Int = (bytes + UnitBytes - 1) & -UnitBytes

  /** Number of the page that a record is in. */
  private[engine] def pageNumber(ref: Int): Int = ref >>> UnitsPerPageBits

  /** Index of the record's first byte in its page. */
  private[engine] def offsetOf(ref: Int): Int = (ref & (UnitsPerPage - 1)) << UnitBits

  /** Reference of a position in a page, given the reference of the page's first byte. */
  private[engine] def refAt(first: Int, offset: Int): Int = first | (offset >> UnitBits)
}
