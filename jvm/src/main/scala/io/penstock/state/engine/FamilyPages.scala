package io.penstock.state.engine

import org.apache.spark.unsafe.Platform

import KeyIndex.HeaderBytes
import io.penstock.state.format.{ByteSink, BytesOut, ChangeSet, FamilyTraits}

/**
 * The records of a family, as they are now, in the order and with the page breaks that an image has. Records of a hash
 * index come in the order in which they lie in memory, so that neighbours are copied together.
 */
final private[engine] class FamilyPages(name: String, traits: FamilyTraits, table: RecordTable) {
  private val hashed = table.hashedRefs.map(RefOrder.sorted)
  private val refs = hashed.fold(table.refs)(_.map(_.toInt))
  private val memory = table.arena.heldPages

  /** Whether pages in memory have nothing but these records, up to the end of each page's last. */
  private val isWhole = hashed.isDefined && table.wastedBytes == 0
  private val pages = if (isWhole) pagesInMemory else fullPages

  /** Of hashes and records. */
  val bytes: Long = hashed.fold(0L)(_ => 4L * refs.length) + pages.map(_.toLong).sum

  def describe(header: ByteSink): Unit = {
    header.putByte(ChangeSet.flags(traits))
    header.putString(name)
    header.putVarint(refs.length)
    header.putVarint(pages.length)
    pages.foreach(header.putVarint(_))
  }

  def writeTo(out: BytesOut): Unit = {
    hashed.foreach(writeHashes(_, out))
    if (isWhole) writePages(out) else writeRuns(out)
  }

  private def writeHashes(hashedRefs: Array[Long], out: BytesOut): Unit = {
    val chunk = new Array[Byte](4 * math.min(hashedRefs.length, FamilyPages.HashesAtOnce))
    var i = 0
    while (i < hashedRefs.length) {
      val count = math.min(hashedRefs.length - i, FamilyPages.HashesAtOnce)
      var n = 0
      while (n < count) {
        Platform.putInt(chunk, Platform.BYTE_ARRAY_OFFSET + 4L * n, (hashedRefs(i + n) >>> 32).toInt)
        n += 1
      }
      out.put(chunk, 0, 4 * count)
      i += count
    }
  }

  private def writePages(out: BytesOut): Unit = {
    var page = 0
    var i = 0
    while (page < pages.length) {
      val number = Arena.pageNumber(refs(i))
      out.put(memory(number), 0, pages(page))
      while (i < refs.length && Arena.pageNumber(refs(i)) == number) i += 1
      page += 1
    }
  }

  private def writeRuns(out: BytesOut): Unit = {
    var i = 0
    while (i < refs.length) {
      val number = Arena.pageNumber(refs(i))
      val start = Arena.offsetOf(refs(i))
      var end = start
      while (i < refs.length && Arena.pageNumber(refs(i)) == number && Arena.offsetOf(refs(i)) == end) {
        end += room(refs(i))
        i += 1
      }
      out.put(memory(number), start, end - start)
    }
  }

  private def pagesInMemory: Array[Int] = {
    val lengths = Array.newBuilder[Int]
    var i = 0
    while (i < refs.length) {
      val isLast = i + 1 == refs.length || Arena.pageNumber(refs(i + 1)) != Arena.pageNumber(refs(i))
      if (isLast) lengths += Arena.offsetOf(refs(i)) + room(refs(i))
      i += 1
    }
    lengths.result()
  }

  private def fullPages: Array[Int] = {
    val lengths = Array.newBuilder[Int]
    var length = 0
    refs.foreach { ref =>
      val more = room(ref)
      if (length > 0 && length + more > Arena.PageBytes) {
        lengths += length
        length = 0
      }
      length += more
    }
    lengths += length
    lengths.result()
  }

  private def room(ref: Int): Int = {
    val page = memory(Arena.pageNumber(ref))
    val at = Arena.offsetOf(ref)
    Arena.room(HeaderBytes + KeyIndex.keyLength(page, at) + KeyIndex.valueLength(page, at))
  }
}

private object FamilyPages {
  private val HashesAtOnce = 8192
}
