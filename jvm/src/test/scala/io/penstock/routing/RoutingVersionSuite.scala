package io.penstock.routing

import scala.collection.immutable.SortedMap

import io.penstock.sharding.{Layout, Layouts}
import io.penstock.state.format.{FileFormat, MalformedData}
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class RoutingVersionSuite extends AnyFunSuite with Checks {
  private val routingVersions = for {
    number <- Gen.choose(0L, Long.MaxValue)
    first <- Gen.choose(0L, Long.MaxValue)
    shards <- Gen.choose(1, 65536)
    tasks <- Gen.mapOf(Gen.zip(Gen.choose(0L, 100L), Gen.choose(1, shards)))
    pinned <- Gen.sequence[Seq[Set[Int]], Set[Int]](tasks.keys.toSeq.map(_ => Layouts.pinned))
    pinSlots = tasks.keys.zip(pinned.map(Layout(shards).pinning(_).pinSlots)).filter(_._2.nonEmpty).toMap
    perCore <- Gen.someOf(tasks.keys)
  } yield RoutingVersion(number, first, shards, SortedMap.from(tasks), pinSlots, perCore.toSet)

  private def decode(body: Array[Byte]): RoutingVersion =
    RoutingVersion.decode(body, FileFormat.version(FileFormat.Kind.RoutingVersion))

  test("an encoded routing version decodes to the same value") {
    check(Prop.forAll(routingVersions)(e => decode(RoutingVersion.encode(e)) == e))
  }

  test("the encoded bytes match the specification") {
    val bytes = RoutingVersion.encode(RoutingVersion(1, 300, 256, SortedMap(7L -> 200, 4L -> 5)))
    assert(bytes.map(b => f"$b%02x").mkString(" ") == "01 ac 02 80 02 02 04 05 00 07 c8 01 00 00 00")
    val pinned = RoutingVersion.encode(RoutingVersion(1, 3, 8, SortedMap(0L -> 2), Map(0L -> Vector(None, Some(-2)))))
    assert(pinned.map(b => f"$b%02x").mkString(" ") == "01 03 08 01 00 02 02 00 01 fe ff ff ff 00")
  }

  test("the regions with a task per core are encoded after the regions") {
    val routingVersion = RoutingVersion(1, 3, 8, SortedMap(0L -> 2, 4L -> 5), perCore = Set(4L))
    val bytes = RoutingVersion.encode(routingVersion)
    assert(bytes.map(b => f"$b%02x").mkString(" ") == "01 03 08 02 00 02 00 04 05 00 00 01")
    assert(intercept[MalformedData](decode(bytes.updated(10, 2.toByte))).getMessage.contains("must be between 0 and 1"))
  }

  test("a routing version of 0.1.0 is read, and formats are not confused with each other") {
    val routingVersion = RoutingVersion(1, 3, 8, SortedMap(0L -> 2, 4L -> 5))
    val now = RoutingVersion.encode(routingVersion)
    val before = now.dropRight(2)
    assert(RoutingVersion.decode(before, version = 2) == routingVersion)
    intercept[MalformedData](RoutingVersion.decode(now, version = 2))
    intercept[MalformedData](RoutingVersion.decode(before, version = 3))
  }

  test("missing and surplus bytes are rejected") {
    val bytes = RoutingVersion.encode(RoutingVersion(3, 17, 256, SortedMap(0L -> 4, 2L -> 256)))
    bytes.indices.foreach(n => intercept[MalformedData](decode(bytes.take(n))))
    intercept[MalformedData](decode(bytes :+ 0.toByte))
    val free = Array[Byte](1, 3, 8, 1, 0, 2, 1, 0)
    assert(intercept[MalformedData](decode(free)).getMessage.contains("the last pin slot is free"))
    val twice = Array[Byte](1, 3, 8, 1, 0, 2, 2, 1, 5, 0, 0, 0, 1, 5, 0, 0, 0)
    assert(intercept[MalformedData](decode(twice)).getMessage.contains("a hash is pinned twice"))
  }
}
