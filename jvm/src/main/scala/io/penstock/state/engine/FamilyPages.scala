package io.penstock.state.engine

import KeyIndex.HeaderBytes
import io.penstock.state.format.{ByteSink, BytesOut, ChangeSet, FamilyTraits}

/**
 * The current records of a family, in the order and with the page breaks of an image.
 *
 * @param records
 *   Number of records
 * @param index
 *   Index as an image stores it: the slots, or the hash of each record's key in the order of the records; empty if the
 *   family is ordered
 * @param slots
 *   Number of slots if `index` consists of slots, otherwise 0
 * @param pages
 *   Length of each page in bytes
 */
sealed abstract private[engine] class FamilyPages(
    name: String,
    traits: FamilyTraits,
    records: Int,
    index: Array[Byte],
    slots: Int,
    pages: Array[Int]
) {

  /** Size of index and pages in bytes. */
  final val bytes: Long = index.length + pages.map(_.toLong).sum

  final def describe(header: ByteSink): Unit = {
    header.putByte(ChangeSet.flags(traits) | (if (slots > 0) FamilyPages.HasSlots else 0))
    header.putString(name)
    header.putVarint(records)
    header.putVarint(pages.length)
    pages.foreach(header.putVarint(_))
    if (slots > 0) header.putByte(Integer.numberOfTrailingZeros(slots))
  }

  final def writeTo(out: BytesOut): Unit = {
    out.put(index, 0, index.length)
    writePages(out)
  }

  protected def writePages(out: BytesOut): Unit
}

private[engine] object FamilyPages {

  /** Flag of a family in an image: its index consists of slots, not hashes. Distinct from the flags in change sets. */
  val HasSlots = 16

  /**
   * Records of an ordered family are in key order, others in the order in which they lie in memory. If an unordered
   * family has no dead records, its pages are written as they are, and so are the slots of its index unless too many
   * are free. Otherwise the live records are gathered; records that are adjacent in memory are copied together.
   */
  def of(name: String, traits: FamilyTraits, table: RecordTable): FamilyPages = {
    val memory = table.arena.heldPages
    if (traits.ordered) new Gathered(name, traits, table.refs, Array.emptyByteArray, memory)
    else {
      def refOrder = RefOrder.of(table.hashedRefs.get)
      if (table.wastedBytes > 0) {
        val order = refOrder
        new Gathered(name, traits, order.refs, order.hashes, memory)
      } else {
        val slots = table.denseSlots
        val index = slots.getOrElse(refOrder.hashes)
        new Whole(name, traits, table.size, index, slots.fold(0)(_.length / 8), memory, table.arena.heldBytes)
      }
    }
  }

  final private class Whole(
      name: String,
      traits: FamilyTraits,
      records: Int,
      index: Array[Byte],
      slots: Int,
      memory: Array[Array[Byte]],
      pages: Array[Int]
  ) extends FamilyPages(name, traits, records, index, slots, pages) {
    override protected def writePages(out: BytesOut): Unit = pages.indices.foreach(i => out.put(memory(i), 0, pages(i)))
  }

  final private class Gathered(
      name: String,
      traits: FamilyTraits,
      refs: Array[Int],
      hashes: Array[Byte],
      memory: Array[Array[Byte]]
  ) extends FamilyPages(name, traits, refs.length, hashes, 0, fullPages(refs, memory)) {
    override protected def writePages(out: BytesOut): Unit = {
      var i = 0
      while (i < refs.length) {
        val number = Arena.pageNumber(refs(i))
        val start = Arena.offsetOf(refs(i))
        var end = start
        while (i < refs.length && Arena.pageNumber(refs(i)) == number && Arena.offsetOf(refs(i)) == end) {
          end += room(refs(i), memory)
          i += 1
        }
        out.put(memory(number), start, end - start)
      }
    }
  }

  private def fullPages(refs: Array[Int], memory: Array[Array[Byte]]): Array[Int] = {
    val lengths = Array.newBuilder[Int]
    var length = 0
    refs.foreach { ref =>
      val bytes = room(ref, memory)
      if (length > 0 && length + bytes > Arena.PageBytes) {
        lengths += length
        length = 0
      }
      length += bytes
    }
    lengths += length
    lengths.result()
  }

  private def room(ref: Int, memory: Array[Array[Byte]]): Int = {
    val page = memory(Arena.pageNumber(ref))
    val at = Arena.offsetOf(ref)
    Arena.room(HeaderBytes + KeyIndex.keyLength(page, at) + KeyIndex.valueLength(page, at))
  }
}
