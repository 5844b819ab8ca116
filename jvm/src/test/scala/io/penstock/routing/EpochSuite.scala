package io.penstock.routing

import scala.collection.immutable.SortedMap

import io.penstock.errors.PenstockException
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class EpochSuite extends AnyFunSuite with Checks {
  private val epochs = for {
    number <- Gen.choose(0L, Long.MaxValue)
    first <- Gen.choose(0L, Long.MaxValue)
    shards <- Gen.choose(1, 65536)
    tasks <- Gen.mapOf(Gen.zip(Gen.choose(0L, 100L), Gen.choose(1, 65536)))
  } yield Epoch(number, first, shards, SortedMap.from(tasks))

  private val small = Epoch(3, 17, 256, SortedMap(0L -> 4, 2L -> 256))

  private def error(frame: Array[Byte]) = intercept[PenstockException](Epoch.decode(frame, "x/3.epoch"))

  test("what is written is read") {
    check(Prop.forAll(epochs)(e => Epoch.decode(Epoch.encode(e), "f") == e))
  }

  test("the bytes are those of the specification") {
    val hex = Epoch.encode(Epoch(1, 2, 3, SortedMap(4L -> 5))).map(b => f"$b%02x").mkString
    assert(hex.dropRight(8) == "504b4550" + "00000001" + "00000024" + "0000000000000001" + "0000000000000002" +
      "00000003" + "00000001" + "0000000000000004" + "00000005")
  }

  test("any changed byte, and any other length, is an error that names the file") {
    val frame = Epoch.encode(small)
    frame.indices.foreach { i =>
      val bad = frame.clone()
      bad(i) = (bad(i) ^ 0x10).toByte
      val e = error(bad)
      assert(Set("PENSTOCK_CORRUPT_FILE", "PENSTOCK_NEWER_FORMAT")(e.errorClass) && e.detail.contains("x/3.epoch"), i)
    }
    (0 until frame.length).foreach(n => assert(error(frame.take(n)).errorClass == "PENSTOCK_CORRUPT_FILE", n))
    assert(error(frame :+ 0.toByte).errorClass == "PENSTOCK_CORRUPT_FILE")
  }

  test("a newer version says so") {
    val frame = Epoch.encode(small)
    frame(7) = 2
    val e = error(frame)
    assert(e.errorClass == "PENSTOCK_NEWER_FORMAT" && e.detail.contains("version 2") && e.detail.contains("newer"))
  }
}
