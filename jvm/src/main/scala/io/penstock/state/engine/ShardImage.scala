package io.penstock.state.engine

import scala.collection.Map

import org.apache.spark.unsafe.Platform

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
    val held = families.toSeq.collect { case (name, f) if f.table.size > 0 => new FamilyPages(name, f.traits, f.table) }
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
  final private class Described(val name: String, traits: FamilyTraits, records: Int, pages: Array[Int]) {

    /** Reads the pages, and indexes each as it comes: memory is taken for no more than what follows can hold. */
    def read(in: SectionBytes): FamilyState = {
      val hashes = if (traits.ordered) null else in.take(4 * records)
      val start = in.consumed
      val table = new RecordTable(traits.ordered)
      table.expect(math.min(records, in.remaining / HeaderBytes))
      val key = new KeyBytes
      pages.foreach { length =>
        val at = in.consumed
        index(in.take(length), at, hashes, table, key)
      }
      if (table.size != records) {
        throw new MalformedData(s"family $name has ${table.size} records, $records were announced", start)
      }
      FamilyState.of(traits, table)
    }

    private def index(
        page: Array[Byte],
        pageAt: Int,
        hashes: Array[Byte],
        table: RecordTable,
        key: KeyBytes
    ): Unit = {
      val first = table.arena.adopt(page)
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
        key.set(page, KeyIndex.keyAddress(at), keyLength)
        if (hashes != null) takeHash(hashes, table.size, key, check = at == 0, pageAt + at)
        if (traits.multiValued) {
          val value = at + HeaderBytes + keyLength
          ChangeSet.checkValues(page, value, value + valueLength, -pageAt)
        }
        if (!table.add(key, Arena.refAt(first, at))) {
          throw new MalformedData("a key is there twice, or not in order", pageAt + at)
        }
        at += room
      }
    }

    /** Checks one hash per page: the checksum tells damage, this tells another writer's idea of a hash. */
    private def takeHash(hashes: Array[Byte], record: Int, key: KeyBytes, check: Boolean, at: Int): Unit = {
      if (record == records) throw new MalformedData(s"family $name has more than $records records", at)
      val hash = Platform.getInt(hashes, Platform.BYTE_ARRAY_OFFSET + 4L * record)
      if (check && key.hash != hash) {
        throw new MalformedData(f"the hash of a key is ${key.hash}%08x, $hash%08x is stored", at)
      }
      key.hashedAs(hash): Unit
    }
  }

  private object Described {
    def apply(header: ByteSource): Described = {
      val traits = ChangeSet.readTraits(header)
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
      new Described(name, traits, records, pages)
    }
  }
}
