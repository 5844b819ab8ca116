package io.penstock.routing

import scala.collection.immutable.SortedMap

import io.penstock.sharding.Layout
import io.penstock.state.format.{ByteSink, ByteSource, FileFormat}

/**
 * What a query routes by from one batch on, until the next routing version.
 *
 * @param number
 *   0, 1, 2, ... in the order of their first batches
 * @param firstBatch
 *   first batch that uses it
 * @param shards
 *   S
 * @param tasks
 *   N by region
 * @param pinSlots
 *   pinned hashes by region, as in a [[io.penstock.sharding.Layout]]; regions without any are left out
 * @param perCore
 *   regions that have as many tasks as the application's cores allowed: with other cores they would have others
 */
final case class RoutingVersion(
    number: Long,
    firstBatch: Long,
    shards: Int,
    tasks: SortedMap[Long, Int],
    pinSlots: Map[Long, Vector[Option[Int]]] = Map.empty,
    perCore: Set[Long] = Set.empty
) {

  /** Whether it says this. */
  def isLike(
      shards: Int,
      tasks: SortedMap[Long, Int],
      pinSlots: Map[Long, Vector[Option[Int]]],
      perCore: Set[Long]
  ): Boolean = copy(shards = shards, tasks = tasks, pinSlots = pinSlots, perCore = perCore) == this

  /** How the state of a region is laid out. */
  def layout(region: Long): Layout = Layout(shards, pinSlots.getOrElse(region, Vector.empty))
}

/** The body of a routing version's file: docs/PROTOCOL.md, "Routing versions". */
object RoutingVersion {

  def encode(routingVersion: RoutingVersion): Array[Byte] = {
    val out = new ByteSink(64)
    out.putVarint(routingVersion.number)
    out.putVarint(routingVersion.firstBatch)
    out.putVarint(routingVersion.shards)
    out.putVarint(routingVersion.tasks.size)
    routingVersion.tasks.foreach { case (region, tasks) =>
      out.putVarint(region)
      out.putVarint(tasks)
      Layout.putPinSlots(out, routingVersion.layout(region).pinSlots)
    }
    routingVersion.tasks.keys.foreach(region => out.putByte(if (routingVersion.perCore(region)) 1 else 0))
    out.toByteArray
  }

  /**
   * @param version
   *   of the format
   * @throws io.penstock.state.format.MalformedData
   *   where the bytes do not follow the format
   */
  def decode(body: Array[Byte], version: Int): RoutingVersion = {
    val in = new ByteSource(body)
    val (number, first) = (in.getVarint(), in.getVarint())
    val shards = in.getNumber("number of shards", 1L, FileFormat.MaxShards).toInt
    var least = 0L
    val regions = Seq.fill(in.getCount("number of regions", in.remaining / 3)) {
      val region = in.getNumber("region", least, Long.MaxValue - 1)
      least = region + 1
      (region, in.getNumber("number of tasks", 1L, shards).toInt, Layout.getPinSlots(in))
    }
    val perCore =
      if (version < 3) Set.empty[Long]
      else regions.map(_._1).filter(_ => in.getNumber("whether tasks are per core", 0L, 1L) == 1L).toSet
    in.expectEnd("region")
    val tasks = SortedMap.from(regions.map { case (region, n, _) => region -> n })
    val pinSlots = regions.collect { case (region, _, some) if some.nonEmpty => region -> some }.toMap
    RoutingVersion(number, first, shards, tasks, pinSlots, perCore)
  }
}
