package io.penstock.state.engine

import scala.collection.Map

import org.apache.spark.unsafe.Platform

import HashIndex.MaxSlotsPerKey
import KeyIndex.HeaderBytes
import io.penstock.state.format._

/**
 * The whole content of a shard, as it is when this is made, as bytes: records lie in pages as they lie in memory, so that a
 * reader takes the pages as they are, and what is left to do is to index them. Specified in docs/PROTOCOL.md, "Image".
 *
 * It refers to the shard's pages, in which no record ever changes: another thread can write it, whatever becomes of the
 * shard meanwhile.
 */
final class ShardImage private (header: Array[Byte], families: Seq[FamilyPages]) {

  /** Length of the image. */
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

  /** The image of these families; those that hold nothing are left out. */
  private[engine] def of(families: Map[String, FamilyState]): ShardImage = {
    val held = families.toSeq.collect { case (name, f) if f.table.size > 0 => FamilyPages.of(name, f.traits, f.table) }
    val header = new ByteSink(64)
    header.putVarint(held.size)
    held.foreach(_.describe(header))
    new ShardImage(header.toByteArray, held)
  }

  /**
   * Reads an image.
   *
   * @throws io.penstock.state.format.MalformedData
   *   where the bytes are not one
   */
  def read(in: SectionBytes): ShardState = {
    val state = new ShardState
    described(in).foreach { family =>
      val at = in.consumed
      if (!state.add(family.name, family.read(in))) throw new MalformedData(s"family ${family.name} is there twice", at)
    }
    in.expectEnd("page")
    state
  }

  private def described(in: SectionBytes): Seq[Described] = {
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

  /** What the header says of a family. */
  final private class Described(
      val name: String,
      traits: FamilyTraits,
      records: Int,
      pages: Array[Int],
      slots: Option[Int]
  ) {

    /** Reads the pages, and indexes each as it comes: memory is taken for no more than what follows can hold. */
    def read(in: SectionBytes): FamilyState = {
      val start = in.consumed
      val table = new RecordTable(traits.ordered)
      val indexed = slots match {
        case Some(count) => new Slotted(table, records, takeSlots(in, count), start)
        case None if traits.ordered => new Ascending(table)
        case None =>
          val hashes = in.take(4 * records)
          table.expect(math.min(records, in.remaining / HeaderBytes))
          new Hashed(table, hashes)
      }
      val found = new PageRecords(pages.foldLeft(0)(math.max(_, _)))
      pages.foreach { length =>
        val at = in.consumed
        val page = in.take(length)
        found.find(page, at)
        if (traits.multiValued) checkValues(page, at, found)
        val added = indexed.add(page, at, found)
        if (added < found.size) throw new MalformedData("a key is there twice, or not in order", at + found(added))
      }
      indexed.finish()
      if (table.size != records) {
        throw new MalformedData(s"family $name has ${table.size} records, $records were announced", start)
      }
      FamilyState.of(traits, table)
    }

    /** A page at a time, which is still in the processor's cache when it goes to its place. */
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

    private def checkValues(page: Array[Byte], pageAt: Int, found: PageRecords): Unit = {
      var i = 0
      while (i < found.size) {
        val value = found(i) + HeaderBytes + KeyIndex.keyLength(page, found(i))
        ChangeSet.checkValues(page, value, value + KeyIndex.valueLength(page, found(i)), -pageAt)
        i += 1
      }
    }
  }

  /** Indexes records, page after page. */
  sealed private trait Indexed {

    /** Takes the records of a page; gives how many, fewer than there are where the key of the next may not be there. */
    def add(page: Array[Byte], pageAt: Int, found: PageRecords): Int

    /** Called behind the last page. */
    def finish(): Unit = ()
  }

  final private class Ascending(table: RecordTable) extends Indexed {
    private val key = new KeyBytes

    override def add(page: Array[Byte], pageAt: Int, found: PageRecords): Int = {
      val first = table.arena.adopt(page)
      var i = 0
      while (
        i < found.size && {
          key.set(page, KeyIndex.keyAddress(found(i)), KeyIndex.keyLength(page, found(i)))
          table.append(key, Arena.refAt(first, found(i)))
        }
      ) i += 1
      i
    }
  }

  /** With the hash of each record's key, an int. */
  final private class Hashed(table: RecordTable, hashes: Array[Byte]) extends Indexed {
    private var hashedRefs = Array.emptyLongArray

    override def add(page: Array[Byte], pageAt: Int, found: PageRecords): Int = {
      if (found.size > hashes.length / 4 - table.size) {
        throw new MalformedData(s"a family with more than ${hashes.length / 4} records", pageAt)
      }
      if (hashedRefs.length < found.size) hashedRefs = new Array[Long](found.size)
      checkHash(page, pageAt)
      val first = table.arena.adopt(page)
      var i = 0
      var hashAt = Platform.BYTE_ARRAY_OFFSET + 4L * table.size
      while (i < found.size) {
        hashedRefs(i) = (Platform.getInt(hashes, hashAt).toLong << 32) | Arena.refAt(first, found(i))
        hashAt += 4
        i += 1
      }
      table.addAll(hashedRefs, found.size)
    }

    /** Checks one hash per page: the checksum tells damage, this tells another writer's idea of a hash. */
    private def checkHash(page: Array[Byte], pageAt: Int): Unit = {
      val key = new KeyBytes
      key.set(page, KeyIndex.keyAddress(0), KeyIndex.keyLength(page, 0))
      val hash = Platform.getInt(hashes, Platform.BYTE_ARRAY_OFFSET + 4L * table.size)
      if (key.hash != hash) {
        throw new MalformedData(f"the hash of a key is ${key.hash}%08x, $hash%08x is stored", pageAt)
      }
    }
  }

  /** With the slots of the index that they were in. */
  final private class Slotted(table: RecordTable, records: Int, slots: Array[Long], slotsAt: Int) extends Indexed {
    private var starts = Array.emptyLongArray
    private val pages = Array.newBuilder[(Int, Int)]

    override def add(page: Array[Byte], pageAt: Int, found: PageRecords): Int = {
      val first = table.arena.adopt(page)
      pages += first -> pageAt
      val last = Arena.refAt(first, found(found.size - 1)) >>> 6
      if (last >= starts.length) starts = java.util.Arrays.copyOf(starts, math.max(last + 1, 2 * starts.length))
      mark(found, first, starts)
      found.size
    }

    private def mark(found: PageRecords, first: Int, starts: Array[Long]): Unit = {
      var i = 0
      while (i < found.size) {
        val ref = Arena.refAt(first, found(i))
        starts(ref >>> 6) |= 1L << ref
        i += 1
      }
    }

    /** Checks one hash per page: the checksum tells damage, this tells another writer's idea of a hash. */
    override def finish(): Unit = {
      val wrong = table.adopt(slots, starts)
      if (wrong >= 0) throw new MalformedData(s"slot $wrong has what cannot be there", slotsAt + 8 * wrong)
      val key = new KeyBytes
      // With more than were announced no slot may be free, and what is not there is looked for without end.
      if (table.size == records) pages.result().foreach { case (first, at) =>
        if (table.find(table.keyOf(first, key)) != first) {
          throw new MalformedData(f"the hash of a key is ${key.hash}%08x, and it is not in its slot", at)
        }
      }
    }
  }

  private object Described {

    /** A section has two gibibytes. */
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
        if (bytes < HeaderBytes || bytes % HeaderBytes != 0) throw new MalformedData(s"a page of $bytes bytes", at)
        bytes
      }
      // A record takes one unit or more.
      if (records > pages.map(_.toLong).sum / HeaderBytes) {
        throw new MalformedData(s"$records records in ${pages.length} pages", header.consumed)
      }
      val slots = Option.when((flags & FamilyPages.HasSlots) != 0) {
        if (traits.ordered) throw new MalformedData("slots of an ordered family", flagsAt)
        val at = header.consumed
        val bits = header.getByte()
        if (bits > MaxSlotBits || records.toLong * 4 > (3L << bits) || (1L << bits) > MaxSlotsPerKey * records.toLong)
          throw new MalformedData(s"2^$bits slots for $records records", at)
        1 << bits
      }
      new Described(name, traits, records, pages, slots)
    }
  }
}
