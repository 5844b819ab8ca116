package io.penstock.routing

import scala.collection.immutable.SortedMap

import io.penstock.state.format.{ByteSink, ByteSource, MalformedData}

/**
 * What a query routes by from one batch on, until the next epoch.
 *
 * @param number
 *   0, 1, 2, ... in the order of their first batches
 * @param firstBatch
 *   first batch that uses it
 * @param shards
 *   S
 * @param tasks
 *   N by region
 */
final case class Epoch(number: Long, firstBatch: Long, shards: Int, tasks: SortedMap[Long, Int])

/** The body of an epoch's file: docs/PROTOCOL.md, "Epochs". */
object Epoch {

  def encode(epoch: Epoch): Array[Byte] = {
    val out = new ByteSink(64)
    out.putVarint(epoch.number)
    out.putVarint(epoch.firstBatch)
    out.putVarint(epoch.shards)
    out.putVarint(epoch.tasks.size)
    epoch.tasks.foreach { case (region, tasks) =>
      out.putVarint(region)
      out.putVarint(tasks)
    }
    out.toByteArray
  }

  /** @throws io.penstock.state.format.MalformedData where the bytes do not follow the format */
  def decode(body: Array[Byte]): Epoch = {
    val in = new ByteSource(body)
    val (number, first, shards) = (in.getVarint(), in.getVarint(), in.getCount("number of shards"))
    val regions = Seq.fill(in.getCount("number of regions", in.remaining))(in.getVarint() -> in.getCount("tasks"))
    if (in.remaining > 0) throw new MalformedData(s"${in.remaining} bytes after the last region")
    Epoch(number, first, shards, SortedMap.from(regions))
  }
}
