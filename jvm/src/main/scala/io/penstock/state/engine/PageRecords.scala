package io.penstock.state.engine

import KeyIndex.HeaderBytes
import io.penstock.state.format.MalformedData

/**
 * Where the records of a page start. One instance is reused for many pages.
 *
 * @param longest
 *   bytes of the longest page
 */
final private[engine] class PageRecords(longest: Int) {
  private val starts = new Array[Int](math.min(longest, Arena.PageBytes) / HeaderBytes)
  private var count = 0

  def size: Int = count

  /** Index of a record's first byte in the page. */
  def apply(record: Int): Int = starts(record)

  /**
   * Finds the records of a page.
   *
   * @param pageAt
   *   where the page starts, for errors
   * @throws io.penstock.state.format.MalformedData
   *   where the page is not full of records, or longer than pages are and not one record
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
        throw new MalformedData(s"a page of ${page.length} bytes has more than one record", pageAt + at)
      }
      starts(n) = at
      n += 1
      at += room
    }
    count = n
  }
}
