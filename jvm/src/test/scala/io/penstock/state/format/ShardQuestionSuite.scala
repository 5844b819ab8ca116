package io.penstock.state.format

import java.util.UUID

import io.penstock.PropertyChecks
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class ShardQuestionSuite extends AnyFunSuite with PropertyChecks {
  private def uuids = Gen.zip(Gen.long, Gen.long).map(l => new UUID(l._1, l._2))

  private val questions = for {
    root <- Gen.asciiPrintableStr
    operator <- Gen.choose(0L, 9L)
    name <- Gen.asciiPrintableStr
    wanted <- Gen.listOf(Gen.zip(Gen.choose(0, 5000), uuids, uuids).map(w => WantedShard(w._1, w._2, w._3)))
    id <- uuids
  } yield ShardQuestion(id, root, StoreKey(operator, name), wanted)

  private val images = Gen.listOf(Gen.option(Gen.listOf(Gen.choose(Byte.MinValue, Byte.MaxValue)).map(_.toArray)))

  private val id = new UUID(5, 6)

  private def answer(contents: Seq[Option[Array[Byte]]], id: UUID = id): Array[Byte] = {
    val shards = contents.zipWithIndex.map {
      case (Some(part), i) if i % 3 == 0 => AnsweredShard.Changed(part.length)
      case (Some(image), i) => AnsweredShard.Held(i, 10L * i, image.length)
      case (None, i) => if (i % 2 == 0) AnsweredShard.NotHeld else AnsweredShard.Later
    }
    val out = new ByteSink
    val head = ShardAnswer.head(id, shards)
    out.put(head, 0, head.length)
    for ((Some(image), i) <- contents.zipWithIndex) ShardAnswer.writePart(id, i, out)(_.put(image, 0, image.length))
    assert(out.size == ShardAnswer.bytes(head, shards))
    out.toByteArray
  }

  private class Arrived(bytes: Array[Byte]) extends SectionBytes {
    private var at = 0
    override def consumed: Int = at
    override def remaining: Int = bytes.length - at
    override def take(count: Int): Array[Byte] = {
      if (count < 0 || count > remaining) throw new MalformedData("cut off", at)
      at += count
      bytes.slice(at - count, at)
    }
  }

  /** Reads the images of an answer about `shards` shards. */
  private def read(bytes: Array[Byte], shards: Int): Seq[Option[Seq[Byte]]] = {
    val found = scala.collection.mutable.ArrayBuffer[Option[Seq[Byte]]]()
    ShardAnswer.read(id, new Arrived(bytes), shards)((_, in) => in.takeAll().toSeq) { (i, shard, image) =>
      assert(i == found.size && image.isDefined == shard.isInstanceOf[AnsweredShard.Follows])
      assert(image.isEmpty || shard.isInstanceOf[AnsweredShard.Changed] == (i % 3 == 0))
      found += image
    }
    found.toSeq
  }

  private def refused(body: => Unit): Boolean =
    try { body; false }
    catch { case _: MalformedData => true }

  test("questions round-trip, and a part of one is rejected") {
    check(Prop.forAll(questions) { q =>
      val bytes = ShardQuestion.encode(q)
      ShardQuestion.decode(bytes) == q && refused(ShardQuestion.decode(bytes.dropRight(1)): Unit) &&
      refused(ShardQuestion.decode(bytes :+ 0.toByte): Unit)
    })
  }

  test("offers and their answers round-trip, and a part of one is rejected") {
    val offers = for {
      q <- questions
      baseShards <- Gen.choose(1, 1000)
      executor <- Gen.asciiPrintableStr
      addresses <- Gen.mapOf(Gen.zip(Gen.alphaStr, Gen.asciiPrintableStr))
      version <- Gen.choose(0L, Long.MaxValue)
      more <- Gen.listOf(Gen.const(q.wanted.map(w => w.shard -> w.lineage)))
    } yield ShardOffer(q.stateRoot, baseShards, executor, addresses, more.map(OfferedStore(q.store, version, _)))
    check(Prop.forAll(offers) { offer =>
      val bytes = ShardOffer.encode(offer)
      ShardQuestion.isOffer(bytes) && ShardOffer.decode(bytes) == offer && refused(ShardQuestion.decode(bytes): Unit) &&
      refused(ShardOffer.decode(bytes.dropRight(1)): Unit) && refused(ShardOffer.decode(bytes :+ 0.toByte): Unit)
    })
    check(Prop.forAll(Gen.listOf(Gen.choose(0, 5000))) { shards =>
      val bytes = ShardOffer.encodeTaken(shards)
      ShardOffer.decodeTaken(bytes) == shards && refused(ShardOffer.decodeTaken(bytes :+ 0.toByte): Unit)
    })
  }

  test("answers are read shard by shard") {
    check(Prop.forAll(images) { contents =>
      val bytes = answer(contents)
      read(bytes, contents.size) == contents.map(_.map(_.toSeq)) && refused(read(bytes, contents.size + 1): Unit)
    })
  }

  test("the answer to another question with as many shards is rejected, completely and in part") {
    check(Prop.forAll(images.suchThat(_.exists(_.nonEmpty)), uuids.suchThat(_ != id)) { (contents, other) =>
      val (own, foreign) = (answer(contents), answer(contents, other))
      val head = ShardAnswer.head(id, Nil).length
      assert(own.length == foreign.length && head > 0)
      // Head of this answer with parts of another one, as they may lie in memory that received both.
      val parts = contents.flatten.map(_.length + 4).sum
      refused(read(foreign, contents.size): Unit) &&
      refused(read(own.dropRight(parts) ++ foreign.takeRight(parts), contents.size): Unit) &&
      read(own, contents.size) == contents.map(_.map(_.toSeq))
    })
  }

  test("a flipped bit, a missing byte and a surplus byte are detected") {
    check(Prop.forAll(images.suchThat(_.exists(_.exists(_.nonEmpty))), Gen.choose(0, Int.MaxValue)) { (shards, seed) =>
      val bytes = answer(shards)
      val flipped = bytes.clone()
      val at = seed % bytes.length
      flipped(at) = (flipped(at) ^ (1 << seed % 8)).toByte
      Seq(flipped, bytes.dropRight(1), bytes :+ 1.toByte).forall(b => refused(read(b, shards.size): Unit))
    })
  }

  test("random bytes are rejected, or are an answer that ends where they end") {
    check(Prop.forAll(Gen.listOf(Gen.choose(Byte.MinValue, Byte.MaxValue)), Gen.choose(0, 3)) { (bytes, shards) =>
      try { read(bytes.toArray, shards); true }
      catch { case _: MalformedData => true }
    })
  }
}
