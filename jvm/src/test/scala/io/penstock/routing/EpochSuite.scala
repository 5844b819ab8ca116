package io.penstock.routing

import scala.collection.immutable.SortedMap

import io.penstock.state.format.MalformedData
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class EpochSuite extends AnyFunSuite with Checks {
  private val epochs = for {
    number <- Gen.choose(0L, Long.MaxValue)
    first <- Gen.choose(0L, Long.MaxValue)
    shards <- Gen.choose(1, 65536)
    tasks <- Gen.mapOf(Gen.zip(Gen.choose(0L, 100L), Gen.choose(1, shards)))
  } yield Epoch(number, first, shards, SortedMap.from(tasks))

  test("what is written is read") {
    check(Prop.forAll(epochs)(e => Epoch.decode(Epoch.encode(e)) == e))
  }

  test("the bytes are those of the specification") {
    val bytes = Epoch.encode(Epoch(1, 300, 256, SortedMap(7L -> 200, 4L -> 5)))
    assert(bytes.map(b => f"$b%02x").mkString(" ") == "01 ac 02 80 02 02 04 05 07 c8 01")
  }

  test("bytes that are missing or too many are refused") {
    val bytes = Epoch.encode(Epoch(3, 17, 256, SortedMap(0L -> 4, 2L -> 256)))
    bytes.indices.foreach(n => intercept[MalformedData](Epoch.decode(bytes.take(n))))
    intercept[MalformedData](Epoch.decode(bytes :+ 0.toByte))
  }
}
