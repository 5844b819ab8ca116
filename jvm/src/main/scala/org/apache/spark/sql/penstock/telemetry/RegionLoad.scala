package org.apache.spark.sql.penstock.telemetry

import scala.jdk.CollectionConverters._

import org.apache.spark.util.AccumulatorV2

import io.penstock.routing.Load
import io.penstock.sharding.Layout
import io.penstock.telemetry.{HeavyKeys, KeyShare, OperatorLoad, ShardSamples, TaskLoad}

/**
 * What the tasks of a region measured in one batch, by task. Only attempts that succeeded count.
 *
 * @param operators
 *   ids of the stateful operators of the region
 * @param taskCount
 *   N
 * @param reportKeys
 *   whether heavy keys may be told by their values
 * @param countsAll
 *   whether every row of the input is counted for its key, since times are known to tell little
 * @param whenComplete
 *   called once on the driver, on the scheduler's thread, when all tasks have reported
 */
final class RegionLoad(
    val layout: Layout,
    val operators: Seq[Long],
    taskCount: Int,
    val reportKeys: Boolean,
    val countsAll: Boolean,
    @transient private val whenComplete: RegionLoad => Unit
) extends PartitionAccumulator[TaskLoad] {
  private var isComplete = false

  override protected def empty: RegionLoad = new RegionLoad(layout, operators, taskCount, reportKeys, countsAll, null)

  override def merge(other: AccumulatorV2[(Int, TaskLoad), java.util.Map[Int, TaskLoad]]): Unit = {
    super.merge(other)
    if (whenComplete != null && !isComplete && reported == taskCount) {
      isComplete = true
      whenComplete(this)
    }
  }

  /** What each task measured, in the order of tasks. */
  def tasks: Seq[TaskLoad] = value.asScala.toSeq.sortBy(_._1).map(_._2)

  /**
   * The keys that had much of the batch's time or, where times tell little, of its rows.
   *
   * @param rows
   *   of the batch
   */
  def heavyKeys(rows: Long): Seq[KeyShare] =
    HeavyKeys.of(tasks.flatMap(_.heavyKeys), Option.when(!timesTellLittle)(bookedNs), rows)

  /** Hashes of the keys that tasks have sampled most of, heavy or not. */
  def sampledHashes: Seq[Int] = tasks.flatMap(_.heavyKeys).map(_.hash).distinct

  /**
   * Time of the task that took longest over the mean; None where tasks are so short that what the machine does besides counts
   * for more than their work.
   */
  def achievedImbalance: Option[Double] = {
    val work = tasks.map(_.workNs).toArray
    Option.when(work.nonEmpty && work.sum / work.length >= RegionLoad.ShortTaskNs)(Load.imbalance(work))
  }

  /** Time of all tasks that was booked to rows. */
  def bookedNs: Long = tasks.map(_.busyNs.sum).sum

  /** Time of all tasks in which they did more than every task does: what was booked to rows, or what is beyond the start. */
  def workMs: Double = tasks.map(t => math.max(t.busyNs.sum / 1e6, t.workNs / 1e6 - RegionLoad.TaskMs)).sum

  /**
   * Whether most of what tasks did was booked to no row: it was done by other threads, or after all rows were taken. What
   * was booked is not in proportion to what rows cost then.
   */
  def timesTellLittle: Boolean = workMs > RegionLoad.LittleMs && bookedNs / 1e6 < workMs / 2

  /** What rows of each shard took, over all tasks so far. */
  def samples: ShardSamples = ShardSamples.of(tasks, layout.shards)

  /** Standard deviation of the time of rows of one shard, over the mean; None where that cannot be told. */
  def rowDeviation: Option[Double] = {
    val known = tasks.filter(t => t.timed.deviationNs > 0.0 && t.timed.meanNs > 0.0)
    Option.when(known.nonEmpty)(known.map(t => t.timed.deviationNs / t.timed.meanNs).sum / known.size)
  }

  /** Time of each shard, over all tasks so far. */
  def busyOfShardsNs: Array[Long] = TaskLoad.busyOfShards(tasks, layout.shards)

  /**
   * What each operator did, over all tasks so far.
   *
   * @param rows
   *   that came into the region, of each shard
   */
  def ofOperators(rows: Array[Long]): Map[Long, OperatorLoad] = operators match {
    case Seq(one) => Map(one -> OperatorLoad(rows, busyOfShardsNs))
    case _ => OperatorLoad.sum(tasks, layout.shards)
  }
}

object RegionLoad {

  /** In less than this, what rows cost is hardly told from what a task takes. */
  private[penstock] val LittleMs = 50.0

  /** Tasks of less are too short to be compared. */
  private[penstock] val ShortTaskNs = 10000000L

  /** What a task takes besides its rows, at most. */
  private val TaskMs = 30.0
}
