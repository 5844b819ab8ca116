package org.apache.spark.sql.penstock.routing

import org.apache.spark.internal.config
import org.apache.spark.rdd.{RDD, RDDOperationScope}
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BindReferences, Expression, UnsafeRowChecksum}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.execution.{SQLExecution, ShufflePartitionSpec, SparkPlan, UnsafeRowSerializer}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.penstock.shims.Shuffles
import org.apache.spark.sql.penstock.telemetry.RegionLoad
import org.apache.spark.util.MutablePair
import org.apache.spark.{PartitionIdPassthrough, ShuffleDependency, SparkEnv}

/**
 * A shuffle exchange that writes one block per shard. It is read by N tasks, which are bound to shards at the barrier,
 * or shard by shard if the nodes above need one partition per shard. It extends [[ShuffleExchangeExec]] because Spark's
 * rules look for that class, and takes all fields from `exchange` but those that not every Spark version has: it is
 * never pipelined.
 */
final class RoutedExchange(exchange: ShuffleExchangeExec)
    extends ShuffleExchangeExec(
      exchange.outputPartitioning,
      exchange.child,
      exchange.shuffleOrigin,
      exchange.advisoryPartitionSize
    )
    with MadeFromPlain {
  private def partitioning: ShardPartitioning = outputPartitioning.asInstanceOf[ShardPartitioning]

  /** Measurements of the tasks that read the exchange. */
  def load: RegionLoad = partitioning.plan.routing.load

  override def nodeName: String = "RoutedExchange"

  /** Number of blocks per map task. */
  override def numPartitions: Int = RoutedExchange.blocks(partitioning.plan.layout.shards)

  @transient
  override lazy val shuffleDependency: ShuffleDependency[Int, InternalRow, InternalRow] =
    RDDOperationScope.withScope(sparkContext, nodeName, false, true, rddScopeId) {
      val counts = new ShardCounts(partitioning.plan.layout.shards)
      sparkContext.register(counts)
      val retry = SQLConf.get.shuffleChecksumMismatchFullRetryEnabled
      val checksums = if (SQLConf.get.shuffleOrderIndependentChecksumEnabled || retry) numPartitions else 0
      val dep = new ShuffleDependency[Int, InternalRow, InternalRow](
        withShards,
        new PartitionIdPassthrough(numPartitions),
        new UnsafeRowSerializer(child.output.size, longMetric("dataSize")),
        None,
        None,
        false,
        new CountingWriteProcessor(metrics, counts),
        UnsafeRowChecksum.createUnsafeRowChecksums(checksums),
        retry,
        SQLConf.get.shuffleChecksumMismatchQueryLevelRollbackEnabled
      )
      // Merged blocks would not be read, and waiting for the merge would delay each batch.
      dep.setShuffleMergeAllowed(false)
      // Register here and not during planning, because a plan may replace this exchange by an equal one.
      partitioning.plan.routing.barrier.register(dep.shuffleId, dep.rdd.getNumPartitions, counts)
      metrics("numPartitions").set(numPartitions)
      val executionId = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
      SQLMetrics.postDriverMetricUpdates(sparkContext, executionId, metrics("numPartitions") :: Nil)
      dep
    }

  /**
   * Pairs of shard and row. The shard follows from the hash that Spark partitions state by, so Spark can read the
   * state.
   */
  private def withShards: RDD[Product2[Int, InternalRow]] = {
    val keys = boundKeys
    val layout = partitioning.plan.layout
    // No copy is needed for Spark's own shuffle writers: they serialize a row before they request the next one.
    val copy = !Shuffles.manager(SparkEnv.get).isInstanceOf[SortShuffleManager]
    inputRDD.mapPartitionsInternal { rows =>
      val hash = ShardHash(keys, layout)
      if (copy) rows.map(row => (hash.of(row), row.copy()))
      else {
        val pair = new MutablePair[Int, InternalRow]()
        rows.map(row => pair.update(hash.of(row), row))
      }
    }
  }

  private def boundKeys: Seq[Expression] = BindReferences.bindReferences(partitioning.expressions, child.output)

  override protected def doExecute(): RDD[InternalRow] =
    if (partitioning.plan.byShard) new ShardRDD(partitioning.plan.tasks, shuffleDependency, readMetrics)
    else new RoutedShuffleRDD(
      partitioning.plan.routing,
      partitioning.plan.tasks,
      boundKeys,
      partitioning.reader,
      shuffleDependency,
      readMetrics
    )

  override def getShuffleRDD(partitionSpecs: Array[ShufflePartitionSpec]): RDD[InternalRow] =
    throw new UnsupportedOperationException("a routed exchange cannot be read adaptively: it is read by its binding")

  override protected def withNewChildInternal(newChild: SparkPlan): ShuffleExchangeExec =
    new RoutedExchange(copy(child = newChild))

  override protected def plain: SparkPlan = copy()

  override def canEqual(other: Any): Boolean = other.isInstanceOf[RoutedExchange]
  override def equals(other: Any): Boolean = other.isInstanceOf[RoutedExchange] && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}

object RoutedExchange {

  /** Makes a routed exchange from `exchange`. */
  def apply(exchange: ShuffleExchangeExec, partitioning: ShardPartitioning): RoutedExchange =
    new RoutedExchange(exchange.copy(outputPartitioning = partitioning))

  /**
   * Number of blocks that a map task declares; only the first ones, one per shard, are used. The number is large enough
   * for Spark to choose its serialized writer, which sorts rows and writes one file, and not the writer that opens a
   * file per block.
   */
  def blocks(shards: Int): Int =
    math.max(shards, SparkEnv.get.conf.get(config.SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD) + 1)
}
