package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.executors.LiveExecutors
import org.apache.spark.sql.penstock.lease.TaskLeases
import org.apache.spark.sql.penstock.telemetry.MeteredRows
import org.apache.spark.{Dependency, Partition, ShuffleDependency, SparkContext, TaskContext}

/**
 * Reads a routed exchange: each task reads the blocks of the shards that are bound to it, and gets the lease of these
 * shards.
 *
 * @param tasks
 *   Number of tasks
 * @param keys
 *   Bound expressions whose hash determines the shard of a row
 * @param reader
 *   Id of the operator that receives the rows
 */
final class RoutedShuffleRDD(
    @transient private val routing: RegionRouting,
    tasks: Int,
    keys: Seq[Expression],
    reader: Long,
    private var dep: ShuffleDependency[Int, InternalRow, InternalRow],
    metrics: Map[String, SQLMetric]
) extends RDD[InternalRow](dep.rdd.context, Nil) {
  private val shipped = new ShippedBinding(routing)
  private val load = routing.load
  @transient private lazy val locations: Array[Seq[String]] =
    routing.locations(Some(dep.shuffleId), LiveExecutors.count(context), LiveExecutors.getsTasks(context))

  RoutedShuffleRDD.readInBatches(context)

  override def getDependencies: Seq[Dependency[_]] = List(dep)

  override protected def getPartitions: Array[Partition] = Array.tabulate[Partition](tasks)(RoutedPartition(_))

  /**
   * The scheduler asks when the map stages are complete, just before it serializes the stage. Other callers may ask
   * before the binding can be decided, and get no locations.
   */
  override protected def getPreferredLocations(split: Partition): Seq[String] =
    if (ShippedBinding.onScheduler && routing.barrier.ready) locations(split.index) else Nil

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val binding = shipped.forTask(split.index)
    TaskLeases.install(context, shipped.lease, binding.shardsOf(split.index))
    val reporter = new SQLShuffleReadMetricsReporter(context.taskMetrics().createTempShuffleReadMetrics(), metrics)
    MeteredRows.input(BlockList.read(dep, binding.runsOf(split.index), context, reporter), keys, reader, load)
  }

  override def clearDependencies(): Unit = {
    super.clearDependencies()
    dep = null
  }
}

private object RoutedShuffleRDD {

  /** Sets the local property that Spark's own shuffle reader sets, which allows batch fetches. */
  def readInBatches(context: SparkContext): Unit = context.setLocalProperty(
    SortShuffleManager.FETCH_SHUFFLE_BLOCKS_IN_BATCH_ENABLED_KEY,
    SQLConf.get.fetchShuffleBlocksInBatch.toString
  )
}

/** A task of a routed region. */
final private case class RoutedPartition(index: Int) extends Partition
