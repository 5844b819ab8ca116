package io.penstock.state.engine

import scala.collection.Map

import org.apache.spark.unsafe.Platform

import HashIndex.MaxSlotsPerKey
import KeyIndex.HeaderBytes
import io.penstock.state.format._

/**
 * The whole content of a shard at the time of creation, as bytes. Pages have the same layout as in memory, so that a
 * reader uses them as they are and only has to index the records. Specified in docs/PROTOCOL.md, "Image".
 *
 * The image refers to the pages of the shard. Records never change there, so another thread can write the image while
 * the shard changes.
 */
final class ShardImage private (header: Array[Byte], families: Seq[FamilyPages]) {

  /** Length of the image in bytes. */
  val bytes: Long = 4L + header.length + families.map(_.bytes).sum

  def writeTo(out: BytesOut): Unit = {
    val length = new ByteSink(4)
    length.putInt(header.length)
    out.put(length.array, 0, 4)
    out.put(header, 0, header.length)
    families.foreach(_.writeTo(out))
  }
}

object ShardImage {

  /** The image of these families, without those that are empty. */
  private[engine] def of(families: Map[String, FamilyState]): ShardImage = {
    val nonEmpty = families.toSeq.collect {
      case (name, f) if f.table.size > 0 => FamilyPages.of(name, f.traits, f.table)
    }
    val header = new ByteSink(64)
    header.putVarint(nonEmpty.size)
    nonEmpty.foreach(_.describe(header))
    new ShardImage(header.toByteArray, nonEmpty)
  }

  /**
   * Reads an image.
   *
   * @throws io.penstock.state.format.MalformedData
   *   If the bytes are not a valid image
   */
  def read(in: SectionBytes): ShardState = {
    val state = new ShardState
    readHeader(in).foreach { family =>
      val at = in.consumed
      if (!state.add(family.name, family.read(in))) {
        throw new MalformedData(s"family ${family.name} is listed twice", at)
      }
    }
    in.expectEnd("page")
    state
  }

  private def readHeader(in: SectionBytes): Seq[Described] = {
    val length = in.take(4)
    val headerAt = in.consumed
    val bytes = in.take(Platform.getInt(length, Platform.BYTE_ARRAY_OFFSET))
    val header = new ByteSource(bytes)
    try {
      val families = Seq.fill(header.getCount("number of families", header.remaining / 4))(Described(header))
      header.expectEnd("family")
      families
    } catch { case e: MalformedData => throw new MalformedData(e.what, headerAt + e.at) }
  }

  /** Description of a family in the header. */
  final private class Described(
      val name: String,
      traits: FamilyTraits,
      records: Int,
      pages: Array[Int],
      slots: Option[Int]
  ) {

    /** Reads and indexes the pages one by one. Allocates no more memory than the remaining input can fill. */
    def read(in: SectionBytes): FamilyState = {
      val start = in.consumed
      val table = new RecordTable(traits.ordered)
      val indexing = slots match {
        case Some(count) => new Slotted(table, records, takeSlots(in, count), start)
        case None if traits.ordered => new Ascending(table)
        case None =>
          val hashes = in.take(4 * records)
          table.expect(math.min(records, in.remaining / HeaderBytes))
          new Hashed(table, hashes)
      }
      val pageRecords = new PageRecords(pages.foldLeft(0)(math.max(_, _)))
      pages.foreach { length =>
        val at = in.consumed
        val page = in.take(length)
        pageRecords.find(page, at)
        if (traits.multiValued) checkValues(page, at, pageRecords)
        val added = indexing.add(page, at, pageRecords)
        if (added < pageRecords.size) {
          throw new MalformedData("a key is duplicated or out of order", at + pageRecords(added))
        }
      }
      indexing.finish()
      if (table.size != records) {
        throw new MalformedData(s"family $name has ${table.size} records, but its header says $records", start)
      }
      FamilyState.of(traits, table)
    }

    /** Copies the slots in chunks of a page, so that each chunk is still in the processor's cache. */
    private def takeSlots(in: SectionBytes, count: Int): Array[Long] = {
      in.expect(8L * count)
      val taken = new Array[Long](count)
      var at = 0
      while (at < count) {
        val next = math.min(count - at, Arena.PageBytes / 8)
        Platform.copyMemory(
          in.take(8 * next),
          Platform.BYTE_ARRAY_OFFSET,
          taken,
          Platform.LONG_ARRAY_OFFSET + 8L * at,
          8L * next
        )
        at += next
      }
      taken
    }

    private def checkValues(page: Array[Byte], pageAt: Int, pageRecords: PageRecords): Unit = {
      var i = 0
      while (i < pageRecords.size) {
        val value = pageRecords(i) + HeaderBytes + KeyIndex.keyLength(page, pageRecords(i))
        ChangeSet.checkValues(page, value, value + KeyIndex.valueLength(page, pageRecords(i)), -pageAt)
        i += 1
      }
    }
  }

  /** Indexes records page by page. */
  sealed private trait Indexed {

    /** Adds the records of a page. Returns their number, which is lower if the key of the next one is not allowed. */
    def add(page: Array[Byte], pageAt: Int, pageRecords: PageRecords): Int

    /** Called after the last page. */
    def finish(): Unit = ()
  }

  final private class Ascending(table: RecordTable) extends Indexed {
    private val key = new KeyBytes

    override def add(page: Array[Byte], pageAt: Int, pageRecords: PageRecords): Int = {
      val first = table.arena.adopt(page)
      var i = 0
      while (
        i < pageRecords.size && {
          key.set(page, KeyIndex.keyAddress(pageRecords(i)), KeyIndex.keyLength(page, pageRecords(i)))
          table.append(key, Arena.refAt(first, pageRecords(i)))
        }
      ) i += 1
      i
    }
  }

  /** Indexes records by stored hashes, an int for each record. */
  final private class Hashed(table: RecordTable, hashes: Array[Byte]) extends Indexed {
    private var hashedRefs = Array.emptyLongArray

    override def add(page: Array[Byte], pageAt: Int, pageRecords: PageRecords): Int = {
      if (pageRecords.size > hashes.length / 4 - table.size) {
        throw new MalformedData(s"the pages of a family hold more than ${hashes.length / 4} records", pageAt)
      }
      if (hashedRefs.length < pageRecords.size) hashedRefs = new Array[Long](pageRecords.size)
      checkHash(page, pageAt)
      val first = table.arena.adopt(page)
      var i = 0
      var hashAt = Platform.BYTE_ARRAY_OFFSET + 4L * table.size
      while (i < pageRecords.size) {
        hashedRefs(i) = (Platform.getInt(hashes, hashAt).toLong << 32) | Arena.refAt(first, pageRecords(i))
        hashAt += 4
        i += 1
      }
      table.addAll(hashedRefs, pageRecords.size)
    }

    /** Checks one hash per page, to find a writer that uses another hash function. Checksums find damage. */
    private def checkHash(page: Array[Byte], pageAt: Int): Unit = {
      val key = new KeyBytes
      key.set(page, KeyIndex.keyAddress(0), KeyIndex.keyLength(page, 0))
      val hash = Platform.getInt(hashes, Platform.BYTE_ARRAY_OFFSET + 4L * table.size)
      if (key.hash != hash) {
        throw new MalformedData(f"the hash of a key is ${key.hash}%08x, but $hash%08x is stored", pageAt)
      }
    }
  }

  /** Indexes records by the stored slots of the index that they were in. */
  final private class Slotted(table: RecordTable, records: Int, slots: Array[Long], slotsAt: Int) extends Indexed {
    private var starts = Array.emptyLongArray
    private val pages = Array.newBuilder[(Int, Int)]

    override def add(page: Array[Byte], pageAt: Int, pageRecords: PageRecords): Int = {
      val first = table.arena.adopt(page)
      pages += first -> pageAt
      val last = Arena.refAt(first, pageRecords(pageRecords.size - 1)) >>> 6
      if (last >= starts.length) starts = java.util.Arrays.copyOf(starts, math.max(last + 1, 2 * starts.length))
      mark(pageRecords, first, starts)
      pageRecords.size
    }

    private def mark(pageRecords: PageRecords, first: Int, starts: Array[Long]): Unit = {
      var i = 0
      while (i < pageRecords.size) {
        val ref = Arena.refAt(first, pageRecords(i))
        starts(ref >>> 6) |= 1L << ref
        i += 1
      }
    }

    /** Checks all slots, and one hash per page to find a writer that uses another hash function. */
    override def finish(): Unit = {
      val wrong = table.adopt(slots, starts)
      if (wrong >= 0) throw new MalformedData(s"slot $wrong contains an invalid entry", slotsAt + 8 * wrong)
      val key = new KeyBytes
      // With more records than the header says, no slot may be free, and then a lookup of a missing key does not end.
      if (table.size == records) pages.result().foreach { case (first, at) =>
        if (table.find(table.keyOf(first, key)) != first) {
          throw new MalformedData(f"the hash of a key is ${key.hash}%08x, but the key is not in the slot for it", at)
        }
      }
    }
  }

  private object Described {

    /** A section is smaller than 2 GiB. */
    private val MaxSlotBits = 27

    def apply(header: ByteSource): Described = {
      val flagsAt = header.consumed
      val flags = ChangeSet.readFlags(header, FamilyPages.HasSlots)
      val traits = ChangeSet.traitsOf(flags)
      val name = header.getString()
      val records = header.getCount("number of records")
      val pages = Array.fill(header.getCount("number of pages", header.remaining)) {
        val at = header.consumed
        val bytes = header.getCount("bytes of a page")
        if (bytes < HeaderBytes || bytes % HeaderBytes != 0) throw new MalformedData(s"invalid page length $bytes", at)
        bytes
      }
      // A record takes at least `HeaderBytes` bytes.
      if (records > pages.map(_.toLong).sum / HeaderBytes) {
        throw new MalformedData(s"the pages of a family have no room for $records records", header.consumed)
      }
      val slots = Option.when((flags & FamilyPages.HasSlots) != 0) {
        if (traits.ordered) throw new MalformedData("an ordered family must not have slots", flagsAt)
        val at = header.consumed
        val bits = header.getByte()
        if (bits > MaxSlotBits || records.toLong * 4 > (3L << bits) || (1L << bits) > MaxSlotsPerKey * records.toLong)
          throw new MalformedData(s"invalid number of slots: 2^$bits slots for $records records", at)
        1 << bits
      }
      new Described(name, traits, records, pages, slots)
    }
  }
}
