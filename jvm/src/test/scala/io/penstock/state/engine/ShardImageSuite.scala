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

  /** Of the key "k", by another implementation of XXH64. */
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

  test("the bytes of an image are those of the specification") {
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

  test("a shard goes on from its image as if it had never been written, whatever its families, records and pages") {
    info(s"seed ${Seed.value}")
    val random = new Random(Seed.value)
    val traits = for (ordered <- Seq(false, true); many <- Seq(false, true)) yield FamilyTraits(ordered, many)
    // Both shards get the same changes; the second one is rebuilt from its image now and then.
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

  test("memory is taken for what is there, and no page is copied again") {
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

  test("what is not an image is refused, and the error says where") {
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
    assert(refused(changed(at + 8, 'c')).contains(s"not in order, at byte ${at + 16}"))
    assert(refused(changed(at + 24, 'a')).contains(s"a key is there twice, or not in order, at byte ${at + 16}"))
    assert(refused(changed(at + 16 + 3, 0x80)).contains(s"does not fit: 16 bytes are left for it, at byte ${at + 16}"))
    assert(refused(changed(at + 16 + 4, 8)).contains(s"at byte ${at + 16}"))
    assert(refused(changed(4 + 4, 1)).contains(s"family f has 2 records, 1 were announced, at byte $at"))
    assert(refused(changed(4 + 4, 5)).contains("5 records in 1 pages"))
    assert(refused(changed(4 + 6, 33)).contains("a page of 33 bytes, at byte 10"))
    assert(refused(changed(4 + 1, 4)).contains("unknown family flags 4, at byte 5"))
    assert(refused(intact :+ 0.toByte).contains(s"1 bytes behind the last page, at byte ${intact.length}"))
    put(shard, "g", Hash, "a".getBytes, "v".getBytes)
    val hashed = image(shard)
    val record = hashed.length - 16
    assert(refused(hashed.updated(record - 1, (hashed(record - 1) ^ 1).toByte)).contains(s"is stored, at byte $record"))
    assert(refused(intact.dropRight(1)).contains(s"32 bytes wanted, 31 left, at byte $at"))
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
