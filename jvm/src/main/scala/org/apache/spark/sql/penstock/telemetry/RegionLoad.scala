package org.apache.spark.sql.penstock.telemetry

import scala.jdk.CollectionConverters._

import org.apache.spark.util.AccumulatorV2

import io.penstock.routing.Load
import io.penstock.sharding.Layout
import io.penstock.telemetry.{HeavyKeys, KeyShare, OperatorLoad, ShardSamples, TaskLoad}

/**
 * Measurements of a region's tasks in one batch, by task. Only successful attempts count.
 *
 * @param layout
 *   Layout of the region's shards
 * @param operators
 *   Ids of the stateful operators of the region
 * @param taskCount
 *   Number of tasks
 * @param reportKeys
 *   Whether reports may show the values of heavy keys
 * @param countsAll
 *   Whether every input row is counted for its key, because times were found not to reflect the cost of rows
 * @param whenComplete
 *   Called once on the driver, on the scheduler's thread, when all tasks have reported
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

  /** Measurements of each task, in the order of tasks. */
  def tasks: Seq[TaskLoad] = value.asScala.toSeq.sortBy(_._1).map(_._2)

  /**
   * Keys with a large share of the batch's time, or of its rows if times do not reflect the cost of rows.
   *
   * @param rows
   *   Number of rows of the batch
   */
  def heavyKeys(rows: Long): Seq[KeyShare] =
    HeavyKeys.of(tasks.flatMap(_.heavyKeys), Option.when(!timesTellLittle)(bookedNs), rows)

  /** Hashes of the keys that tasks sampled most, whether they are heavy or not. */
  def sampledHashes: Seq[Int] = tasks.flatMap(_.heavyKeys).map(_.hash).distinct

  /**
   * Longest task time over the mean task time; None if tasks are so short that other activity of the machine affects
   * their time more than their work does.
   */
  def achievedImbalance: Option[Double] = {
    val work = tasks.map(_.workNs).toArray
    Option.when(work.nonEmpty && work.sum / work.length >= RegionLoad.ShortTaskNs)(Load.imbalance(work))
  }

  /** Sum over all tasks of the time that was booked to rows. */
  def bookedNs: Long = tasks.map(_.busyNs.sum).sum

  /**
   * Sum over all tasks of the time beyond a task's fixed overhead: the time booked to rows, or the task time without
   * the overhead.
   */
  def workMs: Double = tasks.map(t => math.max(t.busyNs.sum / 1e6, t.workNs / 1e6 - RegionLoad.TaskMs)).sum

  /**
   * Whether most of the tasks' time was not booked to rows, because the work was done by other threads or after all
   * rows were read. Then the booked times are not proportional to the cost of rows.
   */
  def timesTellLittle: Boolean = workMs > RegionLoad.LittleMs && bookedNs / 1e6 < workMs / 2

  /** Time of the sampled rows of each shard, over all tasks that have reported. */
  def samples: ShardSamples = ShardSamples.of(tasks, layout.shards)

  /** Standard deviation of the time of rows of one shard, over the mean; None if it is unknown. */
  def rowDeviation: Option[Double] = {
    val known = tasks.filter(t => t.timed.deviationNs > 0.0 && t.timed.meanNs > 0.0)
    Option.when(known.nonEmpty)(known.map(t => t.timed.deviationNs / t.timed.meanNs).sum / known.size)
  }

  /** Busy time of each shard, over all tasks that have reported. */
  def busyOfShardsNs: Array[Long] = TaskLoad.busyOfShards(tasks, layout.shards)

  /**
   * Load of each operator, over all tasks that have reported.
   *
   * @param rows
   *   Number of rows of each shard that the region received
   */
  def ofOperators(rows: Array[Long]): Map[Long, OperatorLoad] = operators match {
    case Seq(one) => Map(one -> OperatorLoad(rows, busyOfShardsNs))
    case _ => OperatorLoad.sum(tasks, layout.shards)
  }
}

object RegionLoad {

  /** With less work than this, the cost of rows can hardly be distinguished from the overhead of tasks. */
  private[penstock] val LittleMs = 50.0

  /** Shorter tasks are not compared. */
  private[penstock] val ShortTaskNs = 10000000L

  /** Upper bound of a task's fixed overhead. */
  private val TaskMs = 30.0
}
