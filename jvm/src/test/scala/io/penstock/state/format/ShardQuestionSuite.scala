package io.penstock.state.format

import java.util.UUID

import io.penstock.PropertyChecks
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class ShardQuestionSuite extends AnyFunSuite with PropertyChecks {
  private val questions = for {
    root <- Gen.asciiPrintableStr
    operator <- Gen.choose(0L, 9L)
    name <- Gen.asciiPrintableStr
    home <- Gen.choose(1, 1000)
    wanted <- Gen.listOf(Gen.zip(Gen.choose(0, 5000), Gen.zip(Gen.long, Gen.long).map(l => new UUID(l._1, l._2))))
  } yield ShardQuestion(root, StoreKey(operator, name), home, wanted)

  private val images = Gen.listOf(Gen.option(Gen.listOf(Gen.choose(Byte.MinValue, Byte.MaxValue)).map(_.toArray)))

  private def answer(of: Seq[Option[Array[Byte]]]): Array[Byte] = {
    val shards = of.zipWithIndex.map {
      case (Some(image), i) => AnsweredShard.Held(i, 10L * i, image.length, FileFormat.crc(image))
      case (None, i) => if (i % 2 == 0) AnsweredShard.NotHeld else AnsweredShard.Later
    }
    9.toByte +: (ShardAnswer.encode(shards) ++ of.flatten.flatten)
  }

  private def refused(body: => Unit): Boolean =
    try { body; false }
    catch { case _: MalformedData => true }

  test("questions come back, and no part of one is one") {
    check(Prop.forAll(questions) { q =>
      val bytes = ShardQuestion.encode(q)
      ShardQuestion.decode(bytes) == q && refused(ShardQuestion.decode(bytes.dropRight(1)): Unit) &&
      refused(ShardQuestion.decode(bytes :+ 0.toByte): Unit)
    })
  }

  test("answers come back shard by shard") {
    check(Prop.forAll(images) { of =>
      val found = scala.collection.mutable.ArrayBuffer[Option[Seq[Byte]]]()
      val bytes = answer(of)
      ShardAnswer.decode(bytes, 1, of.size) { (i, shard, image) =>
        assert(i == found.size && image.isDefined == shard.isInstanceOf[AnsweredShard.Held])
        found += image.map(_.takeAll().toSeq)
      }
      found.toSeq == of.map(_.map(_.toSeq)) && refused(ShardAnswer.decode(bytes, 1, of.size + 1)((_, _, _) => ()))
    })
  }

  test("a flipped bit, a missing byte and one too many are seen") {
    check(Prop.forAll(images.suchThat(_.exists(_.exists(_.nonEmpty))), Gen.choose(0, Int.MaxValue)) { (of, seed) =>
      val bytes = answer(of)
      def read(b: Array[Byte]): Seq[Seq[Byte]] = {
        val found = scala.collection.mutable.ArrayBuffer[Seq[Byte]]()
        ShardAnswer.decode(b, 1, of.size)((_, _, image) => found ++= image.map(_.takeAll().toSeq))
        found.toSeq
      }
      val images = bytes.length - of.flatten.map(_.length).sum
      val flipped = bytes.clone()
      val at = images + seed % (bytes.length - images)
      flipped(at) = (flipped(at) ^ (1 << seed % 8)).toByte
      refused(read(flipped): Unit) && refused(read(bytes.dropRight(1)): Unit) && refused(read(bytes :+ 1.toByte): Unit)
    })
  }

  test("any other bytes are no answer, or one that ends where they do") {
    check(Prop.forAll(Gen.listOf(Gen.choose(Byte.MinValue, Byte.MaxValue)), Gen.choose(0, 3)) { (bytes, shards) =>
      try { ShardAnswer.decode(bytes.toArray, 0, shards)((_, _, image) => image.foreach(_.takeAll())); true }
      catch { case _: MalformedData => true }
    })
  }
}
