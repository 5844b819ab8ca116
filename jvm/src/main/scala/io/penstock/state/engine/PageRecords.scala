package io.penstock.state.engine

import KeyIndex.HeaderBytes
import io.penstock.state.format.MalformedData

/**
 * Start positions of the records of a page. One instance is reused for many pages.
 *
 * @param longest
 *   Length of the longest page in bytes
 */
final private[engine] class PageRecords(longest: Int) {
  private val starts = new Array[Int](math.min(longest, Arena.PageBytes) / HeaderBytes)
  private var count = 0

  def size: Int = count

  /** Position of a record's first byte in the page. */
  def apply(record: Int): Int = starts(record)

  /**
   * Finds the records of a page.
   *
   * @param pageAt
   *   Position of the page in the input, for error messages
   * @throws io.penstock.state.format.MalformedData
   *   If the page is not full of records, or is longer than `Arena.PageBytes` and has more than one record
   */
  def find(page: Array[Byte], pageAt: Int): Unit = {
    var n = 0
    var at = 0
    while (at < page.length) {
      val keyLength = KeyIndex.keyLength(page, at)
      val valueLength = KeyIndex.valueLength(page, at)
      val bytes = HeaderBytes.toLong + keyLength + valueLength
      if (keyLength < 0 || valueLength < 0 || bytes > page.length - at) {
        throw new MalformedData(s"a record does not fit: ${page.length - at} bytes are left for it", pageAt + at)
      }
      val room = Arena.room(bytes.toInt)
      if (page.length > Arena.PageBytes && room < page.length) {
        throw new MalformedData(
          s"a page of ${page.length} bytes has more than one record, although it exceeds ${Arena.PageBytes} bytes",
          pageAt + at
        )
      }
      starts(n) = at
      n += 1
      at += room
    }
    count = n
  }
}
