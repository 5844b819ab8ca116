package io.penstock.routing

import scala.collection.immutable.SortedMap

import io.penstock.sharding.{Layout, Layouts}
import io.penstock.state.format.{FileFormat, MalformedData}
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class EpochSuite extends AnyFunSuite with Checks {
  private val epochs = for {
    number <- Gen.choose(0L, Long.MaxValue)
    first <- Gen.choose(0L, Long.MaxValue)
    shards <- Gen.choose(1, 65536)
    tasks <- Gen.mapOf(Gen.zip(Gen.choose(0L, 100L), Gen.choose(1, shards)))
    pinned <- Gen.sequence[Seq[Set[Int]], Set[Int]](tasks.keys.toSeq.map(_ => Layouts.pinned))
    places = tasks.keys.zip(pinned.map(Layout(shards).pinning(_).places)).filter(_._2.nonEmpty).toMap
    perCore <- Gen.someOf(tasks.keys)
  } yield Epoch(number, first, shards, SortedMap.from(tasks), places, perCore.toSet)

  private def decode(body: Array[Byte]): Epoch = Epoch.decode(body, FileFormat.version(FileFormat.Kind.Epoch))

  test("what is written is read") {
    check(Prop.forAll(epochs)(e => decode(Epoch.encode(e)) == e))
  }

  test("the bytes are those of the specification") {
    val bytes = Epoch.encode(Epoch(1, 300, 256, SortedMap(7L -> 200, 4L -> 5)))
    assert(bytes.map(b => f"$b%02x").mkString(" ") == "01 ac 02 80 02 02 04 05 00 07 c8 01 00 00 00")
    val pinned = Epoch.encode(Epoch(1, 3, 8, SortedMap(0L -> 2), Map(0L -> Vector(None, Some(-2)))))
    assert(pinned.map(b => f"$b%02x").mkString(" ") == "01 03 08 01 00 02 02 00 01 fe ff ff ff 00")
  }

  test("which regions have a task per core stands behind the regions") {
    val epoch = Epoch(1, 3, 8, SortedMap(0L -> 2, 4L -> 5), perCore = Set(4L))
    val bytes = Epoch.encode(epoch)
    assert(bytes.map(b => f"$b%02x").mkString(" ") == "01 03 08 02 00 02 00 04 05 00 00 01")
    assert(intercept[MalformedData](decode(bytes.updated(10, 2.toByte))).getMessage.contains("only 0 to 1 is possible"))
  }

  test("an epoch of 0.1.0 is read, and none is taken for the other") {
    val epoch = Epoch(1, 3, 8, SortedMap(0L -> 2, 4L -> 5))
    val now = Epoch.encode(epoch)
    val before = now.dropRight(2)
    assert(Epoch.decode(before, version = 2) == epoch)
    intercept[MalformedData](Epoch.decode(now, version = 2))
    intercept[MalformedData](Epoch.decode(before, version = 3))
  }

  test("bytes that are missing or too many are refused") {
    val bytes = Epoch.encode(Epoch(3, 17, 256, SortedMap(0L -> 4, 2L -> 256)))
    bytes.indices.foreach(n => intercept[MalformedData](decode(bytes.take(n))))
    intercept[MalformedData](decode(bytes :+ 0.toByte))
    val free = Array[Byte](1, 3, 8, 1, 0, 2, 1, 0)
    assert(intercept[MalformedData](decode(free)).getMessage.contains("the last place is free"))
    val twice = Array[Byte](1, 3, 8, 1, 0, 2, 2, 1, 5, 0, 0, 0, 1, 5, 0, 0, 0)
    assert(intercept[MalformedData](decode(twice)).getMessage.contains("a hash is pinned twice"))
  }
}
