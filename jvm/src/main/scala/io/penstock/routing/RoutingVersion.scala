package io.penstock.routing

import scala.collection.immutable.SortedMap

import io.penstock.sharding.Layout
import io.penstock.state.format.{ByteSink, ByteSource, FileFormat, PinSlots}

/**
 * What a query routes by from one batch on, until the next routing version.
 *
 * @param number
 *   sequence number 0, 1, 2, ... in the order of the first batches
 * @param firstBatch
 *   first batch that uses this version
 * @param shards
 *   number of base shards, S
 * @param tasks
 *   number of tasks of each region
 * @param pinSlots
 *   pin slots of each region, as in a [[io.penstock.sharding.Layout]]; regions without pin slots are omitted
 * @param perCore
 *   regions whose number of tasks follows the number of cores of the application
 */
final case class RoutingVersion(
    number: Long,
    firstBatch: Long,
    shards: Int,
    tasks: SortedMap[Long, Int],
    pinSlots: Map[Long, Vector[Option[Int]]] = Map.empty,
    perCore: Set[Long] = Set.empty
) {

  /** Whether this version has these values. */
  def isLike(
      shards: Int,
      tasks: SortedMap[Long, Int],
      pinSlots: Map[Long, Vector[Option[Int]]],
      perCore: Set[Long]
  ): Boolean = copy(shards = shards, tasks = tasks, pinSlots = pinSlots, perCore = perCore) == this

  /** How the state of a region is laid out. */
  def layout(region: Long): Layout = Layout(shards, pinSlots.getOrElse(region, Vector.empty))
}

/** Encodes and decodes the body of a routing version's file: docs/PROTOCOL.md, "Routing versions". */
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
      PinSlots.put(out, routingVersion.layout(region).pinSlots)
    }
    routingVersion.tasks.keys.foreach(region => out.putByte(if (routingVersion.perCore(region)) 1 else 0))
    out.toByteArray
  }

  /**
   * @param version
   *   version of the format
   * @throws io.penstock.state.format.MalformedData
   *   if the bytes do not follow the format
   */
  def decode(body: Array[Byte], version: Int): RoutingVersion = {
    val in = new ByteSource(body)
    val (number, first) = (in.getVarint(), in.getVarint())
    val shards = in.getNumber("number of shards", 1L, FileFormat.MaxShards).toInt
    var least = 0L
    val regions = Seq.fill(in.getCount("number of regions", in.remaining / 3)) {
      val region = in.getNumber("region", least, Long.MaxValue - 1)
      least = region + 1
      (region, in.getNumber("number of tasks", 1L, shards).toInt, PinSlots.get(in))
    }
    val perCore =
      if (version < 3) Set.empty[Long]
      else regions.map(_._1).filter(_ => in.getNumber("whether tasks are per core", 0L, 1L) == 1L).toSet
    in.expectEnd("region")
    val tasks = SortedMap.from(regions.map { case (region, n, _) => region -> n })
    val pinSlots = regions.collect { case (region, _, slots) if slots.nonEmpty => region -> slots }.toMap
    RoutingVersion(number, first, shards, tasks, pinSlots, perCore)
  }
}
