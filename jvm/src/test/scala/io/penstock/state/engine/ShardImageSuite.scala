package io.penstock.state.engine

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.unsafe.Platform

import io.penstock.Seed
import io.penstock.errors.PenstockException
import io.penstock.state.format._
import org.scalatest.funsuite.AnyFunSuite

class ShardImageSuite extends AnyFunSuite {
  private val At = Platform.BYTE_ARRAY_OFFSET.toLong
  private val Hash = FamilyTraits(ordered = false, multiValued = false)
  private val Ranged = FamilyTraits(ordered = true, multiValued = false)

  /** Hash of the key "k", computed by another implementation of XXH64. */
  private val HashOfK = 0x898fb569

  private def image(shard: ShardState): Array[Byte] = {
    val out = new ByteSink
    out.putInt(17)
    val image = shard.image
    image.writeTo(out)
    assert(image.bytes == out.size - 4)
    out.toByteArray.drop(4)
  }

  private def put(shard: ShardState, family: String, traits: FamilyTraits, key: Array[Byte], value: Array[Byte]): Unit =
    shard.family(family, traits).put(key, At, key.length, value, At, value.length)

  test("the bytes of an image match the specification") {
    val shard = new ShardState
    put(shard, "f", Ranged, "kb".getBytes, "w".getBytes)
    put(shard, "f", Ranged, "ka".getBytes, "value!".getBytes)
    put(shard, "gone", Hash, "k".getBytes, "v".getBytes)
    shard.family("gone", Hash).remove("k".getBytes, At, 1)
    val header = Seq(1, 1, 1, 'f', 2, 1, 32)
    val first = Seq(2, 0, 0, 0, 6, 0, 0, 0) ++ "kavalue!".map(_.toInt)
    val second = Seq(2, 0, 0, 0, 1, 0, 0, 0) ++ "kbw".map(_.toInt) ++ Seq.fill(5)(0)
    assert(image(shard).toSeq == (Seq(header.size, 0, 0, 0) ++ header ++ first ++ second).map(_.toByte))
    assert(image(new ShardState).toSeq == Seq[Byte](1, 0, 0, 0, 0))
    put(shard, "gone", Hash, "k".getBytes, "v".getBytes)
    val hash = Seq(HashOfK, HashOfK >>> 8, HashOfK >>> 16, HashOfK >>> 24).map(_.toByte)
    assert(image(shard).toSeq.takeRight(4 + 16) == hash ++ Seq[Byte](
      1, 0, 0, 0, 1, 0, 0, 0, 'k', 'v', 0, 0, 0, 0, 0, 0
    ))
  }

  test("a shard restored from its image behaves as the original, for any families, records and pages") {
    info(s"seed ${Seed.value}")
    val random = new Random(Seed.value)
    val traits = for (ordered <- Seq(false, true); many <- Seq(false, true)) yield FamilyTraits(ordered, many)
    // Both shards get the same changes. The second one is rebuilt from its image now and then.
    (0 until 60).foreach { _ =>
      val shard = new ShardState
      var copy = new ShardState
      val keys = 1 + random.nextInt(4000)
      val most = if (random.nextInt(4) == 0) 100000 else 60
      (0 until 6).foreach { _ =>
        (0 until random.nextInt(2 * keys)).foreach { _ =>
          val family = traits(random.nextInt(traits.size))
          val key = s"key-${random.nextInt(keys)}".getBytes
          val bytes = random.nextBytes(if (random.nextInt(100) == 0) random.nextInt(most) else random.nextInt(40))
          val value = if (family.multiValued) listed(bytes) else bytes
          val change = random.nextInt(4)
          Seq(shard, copy).foreach { s =>
            val f = s.family(family.toString, family)
            if (change == 0) f.remove(key, At, key.length)
            else if (change == 1 && family.multiValued) f.append(key, At, key.length, value, At, value.length)
            else f.put(key, At, key.length, value, At, value.length)
          }
        }
        copy = Contents.ofImage(image(copy))
        assert(Contents.of(copy) == Contents.of(shard))
        traits.flatMap(t => Option(copy.familyOrNull(t.toString))).foreach { family =>
          found(family.table)
          if (family.traits.ordered) ascending(family.table)
        }
      }
    }
  }

  test("reading allocates memory for the content only, and copies no page again") {
    val shard = new ShardState
    val value = new Array[Byte](100)
    (0 until 20000).foreach(n => put(shard, "f", Hash, f"key-$n%012d".getBytes, value))
    val bytes = image(shard)
    val copy = Contents.ofImage(bytes)
    val table = copy.familyOrNull("f").table
    assert(table.arena.capacityBytes == 20000L * (8 + 16 + 100 + 4))
    assert(table.indexBytes == 8L * 32768)
    assert(table.wastedBytes == 0)
  }

  test("an invalid image is rejected, and the error names the position") {
    val shard = new ShardState
    Seq("a", "b").foreach(k => put(shard, "f", Ranged, k.getBytes, "v".getBytes))
    val intact = image(shard)
    val at = intact.length - 32
    def refused(bytes: Array[Byte]): String = {
      val e = intercept[PenstockException](Contents.ofImage(bytes))
      assert(e.errorClass == "PENSTOCK_CORRUPT_FILE")
      e.detail
    }
    def changed(index: Int, to: Int): Array[Byte] = intact.updated(index, to.toByte)
    assert(refused(changed(at + 8, 'c')).contains(s"out of order, at byte ${at + 16}"))
    assert(refused(changed(at + 24, 'a')).contains(s"a key is duplicated or out of order, at byte ${at + 16}"))
    assert(refused(changed(at + 16 + 3, 0x80)).contains(s"does not fit: 16 bytes are left for it, at byte ${at + 16}"))
    assert(refused(changed(at + 16 + 4, 8)).contains(s"at byte ${at + 16}"))
    assert(refused(changed(4 + 4, 1)).contains(s"family f has 2 records, but its header says 1, at byte $at"))
    assert(refused(changed(4 + 4, 5)).contains("no room for 5 records"))
    assert(refused(changed(4 + 6, 33)).contains("invalid page length 33, at byte 10"))
    assert(refused(changed(4 + 1, 4)).contains("unknown family flags 4, at byte 5"))
    assert(refused(intact :+ 0.toByte).contains(s"1 unexpected bytes after the last page, at byte ${intact.length}"))
    put(shard, "g", Hash, "a".getBytes, "v".getBytes)
    val hashed = image(shard)
    val record = hashed.length - 16
    assert(refused(hashed.updated(record - 1, (hashed(record - 1) ^ 1).toByte)).contains(s"is stored, at byte $record"))
    assert(refused(intact.dropRight(1)).contains(s"32 bytes are needed, but only 31 are left, at byte $at"))
  }

  test("duplicate keys and surplus records are rejected in hashed records, and colliding hashes are kept") {
    val hash = Seq(HashOfK, HashOfK >>> 8, HashOfK >>> 16, HashOfK >>> 24)
    def record(key: Char) = Seq(1, 0, 0, 0, 1, 0, 0, 0, key.toInt, 'v'.toInt) ++ Seq.fill(6)(0)
    def imageOf(records: Int, hashes: Seq[Int], keys: Char*): Array[Byte] = {
      val header = Seq(1, 0, 1, 'f'.toInt, records, 1, 16 * keys.size)
      (Seq(header.size, 0, 0, 0) ++ header ++ hashes ++ keys.flatMap(record)).map(_.toByte).toArray
    }
    def refused(bytes: Array[Byte]): String = intercept[PenstockException](Contents.ofImage(bytes)).detail
    val page = 4 + 7 + 8
    assert(refused(imageOf(
      2,
      hash ++ hash,
      'k',
      'k'
    )).contains(s"a key is duplicated or out of order, at byte ${page + 16}"))
    assert(refused(imageOf(1, hash, 'k', 'l')).contains(s"more than 1 records, at byte ${page - 4}"))
    val table = Contents.ofImage(imageOf(2, hash ++ hash, 'k', 'l')).familyOrNull("f").table
    assert(table.size == 2)
    Seq('k' -> 0, 'l' -> 16).foreach { case (key, at) =>
      val found = table.find(new KeyBytes().set(Array(key.toByte)).hashedAs(HashOfK))
      assert(table.arena.offset(found) == at)
    }
  }

  test("writing an image that was read gives the same bytes, and after changes the new content") {
    val shard = new ShardState
    (0 until 5000).foreach(n => put(shard, "f", Hash, s"key-$n".getBytes, new Array[Byte](n % 100)))
    val first = image(shard)
    val copy = Contents.ofImage(first)
    assert(image(copy) sameElements first)
    (5000 until 5100).foreach(n => put(copy, "f", Hash, s"key-$n".getBytes, new Array[Byte](70000)))
    val more = Contents.ofImage(image(copy))
    assert(more.familyOrNull("f").table.size == 5100 && Contents.of(more) == Contents.of(copy))
    put(copy, "f", Hash, "key-17".getBytes, "other".getBytes)
    assert(Contents.of(Contents.ofImage(image(copy))) == Contents.of(copy))
  }

  test("slots that do not match the records are rejected, and the error names the slot") {
    val shard = new ShardState
    (0 until 20).foreach(n => put(shard, "f", Hash, s"key-$n".getBytes, "v".getBytes))
    val intact = image(shard)
    val header = Seq(1, 16, 1, 'f'.toInt, 20, 1, 20 * 16 + 2 * 200)
    val slotsAt = 4 + intact(0)
    def slot(bytes: Array[Byte], i: Int): Long = Platform.getLong(bytes, At + slotsAt + 8 * i)
    def withSlot(i: Int, to: Long): Array[Byte] = {
      val bytes = intact.clone()
      Platform.putLong(bytes, At + slotsAt + 8 * i, to)
      bytes
    }
    def refused(bytes: Array[Byte]): String = intercept[PenstockException](Contents.ofImage(bytes)).detail
    val slots = (0 until 32).map(slot(intact, _))
    assert(header.take(5).map(_.toByte) == intact.slice(4, 9).toSeq && intact(slotsAt - 1) == 5)
    assert(slots.count(_ != 0L) == 20 && intact.length == slotsAt + 8 * 32 + 20 * 16)
    def bucket(e: Long): Int = { val h = (e >>> 32).toInt; (h ^ (h >>> 16)) & 31 }
    def free(i: Int) = slots(i & 31) == 0L
    val taken = slots.indices.filter(!free(_))
    // A free slot follows, so a lookup does not continue beyond it.
    val last = taken.find(i => free(i + 1)).get
    val other = taken.find(i => i != last).get
    def wrong(i: Int): String = s"slot $i contains an invalid entry, at byte ${slotsAt + 8 * i}"
    assert(refused(withSlot(last, 0L)).contains("family f has 19 records, but its header says 20"))
    assert(refused(withSlot(last, slots(last) + 1L)).contains(wrong(last)))
    assert(refused(withSlot(last, slots(last) | 0xffffffffL)).contains(wrong(last)))
    assert(refused(withSlot(
      last,
      (slots(last) & ~0xffffffffL) | (slots(other) & 0xffffffffL)
    )).contains("contains an invalid entry"))
    val nowhere = (0 until 32).find(d => free(last + 1 + d) && free(last + 2 + d)).map(_ + last + 2).get & 31
    val moved = withSlot(last, 0L)
    Platform.putLong(moved, At + slotsAt + 8 * nowhere, slots(last))
    assert(refused(moved).contains(wrong(nowhere)))
    val first = taken.find(i => (slots(i) & 0xffffffffL) == 1L).get
    val sameBucket = withSlot(first, slots(first) ^ (0x80008000L << 32))
    assert(bucket(slot(sameBucket, first)) == bucket(slots(first)))
    assert(refused(sameBucket).contains(s"but the key is not in the slot for it, at byte ${slotsAt + 8 * 32}"))
    Seq(4 -> "2^4 slots for 20 records", 6 -> "2^6 slots for 20 records", 40 -> "2^40 slots").foreach {
      case (bits, why) =>
        assert(refused(intact.updated(slotsAt - 1, bits.toByte)).contains(why))
    }
    assert(refused(overfull).contains("family f has 8 records, but its header says 6"))
    assert(refused(intact.updated(5, 17.toByte)).contains("an ordered family must not have slots, at byte 5"))
    assert(Contents.ofImage(intact).familyOrNull("f").table.size == 20)
  }

  /** An image that announces 6 records but has 8 in its pages and slots. */
  private def overfull: Array[Byte] = {
    val shard = new ShardState
    (0 until 6).foreach(n => put(shard, "f", Hash, s"key-$n".getBytes, new Array[Byte](30)))
    val six = image(shard)
    val (slotsAt, recordBytes) = (4 + six(0), 48)
    val first = six.slice(slotsAt + 64, slotsAt + 64 + recordBytes)
    val out = six ++ Seq("key-6", "key-7").flatMap(key => first.patch(8, key.getBytes, 5))
    val free = (0 until 8).filter(i => Platform.getLong(out, At + slotsAt + 8 * i) == 0L)
    free.zip(Seq(6, 7)).foreach { case (slot, n) =>
      Platform.putLong(out, At + slotsAt + 8 * slot, (slot.toLong << 32) | (n * recordBytes / 8 + 1L))
    }
    // Size of the page, as a varint of two bytes.
    out(10) = (8 * recordBytes % 128 | 0x80).toByte
    out(11) = (8 * recordBytes / 128).toByte
    // Give the first record of the lookup order another hash, so that no free slot ends the search for it.
    val slot = (0 until 8).find(i => (Platform.getLong(out, At + slotsAt + 8 * i) & 0xffffffffL) == 1L).get
    Platform.putLong(out, At + slotsAt + 8 * slot, Platform.getLong(out, At + slotsAt + 8 * slot) ^ (0x80008000L << 32))
    out
  }

  test("a table with few keys in many slots, or with unreferenced records, is written with hashes") {
    val shard = new ShardState
    (0 until 200).foreach(n => put(shard, "f", Hash, s"key-$n".getBytes, "v".getBytes))
    def hasSlots: Boolean = (image(shard)(5) & 16) != 0
    assert(hasSlots)
    shard.family("f", Hash).remove("key-7".getBytes, At, 5)
    assert(!hasSlots)
    assert(Contents.of(Contents.ofImage(image(shard))) == Contents.of(shard))
  }

  private def listed(values: Array[Byte]*): Array[Byte] = {
    val out = new ByteSink
    values.foreach(v => FamilyState.writeValue(out, v, At, v.length))
    out.toByteArray
  }

  private def found(table: RecordTable): Unit =
    table.refs.foreach(ref => assert(table.find(table.keyOf(ref, new KeyBytes)) == ref))

  private def ascending(table: RecordTable): Unit = {
    val walked = mutable.ArrayBuffer[Int]()
    val cursor = table.orderedKeys.first
    while (cursor.valid) {
      walked += cursor.ref
      cursor.advance()
    }
    assert(walked.size == table.size)
    walked.zip(walked.drop(1)).foreach { case (a, b) => assert(KeyBytes.compare(table, a, table, b) < 0) }
  }
}
