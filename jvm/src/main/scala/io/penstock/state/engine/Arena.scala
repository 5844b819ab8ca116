package io.penstock.state.engine

import io.penstock.errors.PenstockException

/**
 * Append-only memory for records, in pages. A record is named by an int, never moves and never changes once written, so
 * that a reader that is late (an attempt that lost) reads old bytes and never foreign ones. Space is won back by copying
 * the live records into a new arena.
 *
 * Pages are heap arrays: the collector frees one when the last reader has gone, and does not look inside. References
 * grow with time: of two records of one arena, the one with the larger reference is the younger.
 */
final class Arena {
  import Arena._

  private var pages = new Array[Array[Byte]](2)
  // Of all pages but the last.
  private var fullTo = new Array[Int](2)
  private var pageCount = 0
  private var position = 0
  private var capacity = 0L

  /**
   * Room for one record.
   *
   * @param bytes
   *   size of the record
   * @return
   *   its reference; the room starts at `offset(ref)` of `page(ref)`
   */
  def allocate(bytes: Int): Int = {
    val rounded = room(bytes)
    if (pageCount == 0 || position + rounded > math.min(pages(pageCount - 1).length, PageBytes)) addPage(rounded)
    val ref = ((pageCount - 1) << UnitsPerPageBits) | (position >> UnitBits)
    position += rounded
    ref
  }

  /**
   * Takes a page that is full of records; records that are allocated later go to other pages.
   *
   * @return
   *   reference of the page's first byte
   */
  def adopt(page: Array[Byte]): Int = {
    add(page)
    position = page.length
    (pageCount - 1) << UnitsPerPageBits
  }

  /** The reference that the next record will have or exceed: older records have smaller ones. */
  def watermark: Int =
    if (pageCount == 0) 0
    // A record that is larger than a page is alone there.
    else ((pageCount - 1) << UnitsPerPageBits) + (math.min(position, PageBytes) >> UnitBits)

  def page(ref: Int): Array[Byte] = pages(pageNumber(ref))

  /** Index of the record's first byte in its page. */
  def offset(ref: Int): Int = offsetOf(ref)

  /** The pages that are there now: what is written in them stays, whatever comes later. */
  private[engine] def heldPages: Array[Array[Byte]] = java.util.Arrays.copyOf(pages, pageCount)

  /** How much of each of these pages has records. */
  private[engine] def heldBytes: Array[Int] = {
    val bytes = java.util.Arrays.copyOf(fullTo, pageCount)
    if (pageCount > 0) bytes(pageCount - 1) = position
    bytes
  }

  /** Bytes of all pages, used or not. */
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
      fullTo = java.util.Arrays.copyOf(fullTo, pageCount * 2)
    }
    if (pageCount > 0) fullTo(pageCount - 1) = position
    pages(pageCount) = page
    pageCount += 1
    capacity += page.length
  }
}

object Arena {
  private val UnitBits = 3
  private val UnitBytes = 1 << UnitBits
  private val PageBits = 16

  /** Size of a page that holds more than one record. */
  val PageBytes: Int = 1 << PageBits
  private val UnitsPerPageBits = PageBits - UnitBits
  private val UnitsPerPage = 1 << UnitsPerPageBits
  private val MaxPages = 1 << (31 - UnitsPerPageBits)
  private val FirstPageBytes = 512

  /** Room that a record takes in a page. */
  def room(bytes: Int): Int = (bytes + UnitBytes - 1) & -UnitBytes

  /** Number of the page that a record is in. */
  private[engine] def pageNumber(ref: Int): Int = ref >>> UnitsPerPageBits

  /** Index of the record's first byte in its page. */
  private[engine] def offsetOf(ref: Int): Int = (ref & (UnitsPerPage - 1)) << UnitBits

  /** Reference of a position in a page, from that of the page's first byte. */
  private[engine] def refAt(first: Int, offset: Int): Int = first | (offset >> UnitBits)
}
