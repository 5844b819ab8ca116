package org.apache.spark.sql.penstock.routing

import java.io.ObjectOutputStream

import org.apache.spark.rdd.RDD
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease.{RegionLease, TaskLeases}
import org.apache.spark.{Dependency, Partition, ShuffleDependency, SparkContext, TaskContext}

import io.penstock.errors.PenstockException
import io.penstock.routing.Binding

/**
 * Reads a routed exchange: task p gets the blocks of the shards that the binding gives it, and their lease.
 *
 * The binding is decided as the scheduler serializes this RDD into the task binary of its stage, when all map stages
 * are complete and their counts known; no task asks for it. The RDD may be serialized earlier as well, on other threads,
 * by Spark's closure checks: nothing is decided there, because the counts would be zero.
 */
final class LateRDD(
    @transient private val routing: RegionRouting,
    tasks: Int,
    private var dep: ShuffleDependency[Int, InternalRow, InternalRow],
    metrics: Map[String, SQLMetric]
) extends RDD[InternalRow](dep.rdd.context, Nil) {
  private val lease: RegionLease = routing.lease
  private var binding: Binding = _
  @transient private lazy val locations: Array[Seq[String]] =
    routing.locations(dep.shuffleId, LateRDD.executors(context))

  dep.rdd.context.setLocalProperty(
    SortShuffleManager.FETCH_SHUFFLE_BLOCKS_IN_BATCH_ENABLED_KEY,
    SQLConf.get.fetchShuffleBlocksInBatch.toString
  )

  private def writeObject(out: ObjectOutputStream): Unit = {
    if (binding == null && routing != null && LateRDD.onScheduler) binding = routing.barrier.decide().binding
    out.defaultWriteObject()
  }

  override def getDependencies: Seq[Dependency[_]] = List(dep)

  override protected def getPartitions: Array[Partition] = Array.tabulate[Partition](tasks)(LatePartition(_))

  /** The scheduler asks when the map stages are complete, just before it serializes; others may ask too early. */
  override protected def getPreferredLocations(split: Partition): Seq[String] =
    if (LateRDD.onScheduler && routing.barrier.ready) locations(split.index) else Nil

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    if (binding == null) {
      throw new PenstockException(
        "PENSTOCK_NO_BINDING",
        s"task ${split.index} of region ${lease.spec.region}, batch ${lease.batchId}, was started without a binding: " +
          "its stage was not submitted by Spark's scheduler. Run the batch through Spark's own scheduler."
      )
    }
    TaskLeases.install(context, lease, binding.shardsOf(split.index))
    val reporter = new SQLShuffleReadMetricsReporter(context.taskMetrics().createTempShuffleReadMetrics(), metrics)
    BlockList.read(dep, binding.runsOf(split.index), context, reporter)
  }

  override def clearDependencies(): Unit = {
    super.clearDependencies()
    dep = null
  }
}

private object LateRDD {
  def onScheduler: Boolean = Thread.currentThread.getName.startsWith("dag-scheduler")

  /** Executors now; the driver counts where it runs tasks itself. */
  def executors(context: SparkContext): Int =
    math.max(1, context.getExecutorMemoryStatus.size - (if (context.isLocal) 0 else 1))
}

/** A task of a routed region. */
final private case class LatePartition(index: Int) extends Partition
