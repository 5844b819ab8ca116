package org.apache.spark.sql.penstock.routing

import org.apache.spark.internal.config
import org.apache.spark.rdd.{RDD, RDDOperationScope}
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BindReferences, Expression, UnsafeRowChecksum}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.execution.{SQLExecution, ShufflePartitionSpec, UnsafeRowSerializer}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.penstock.shims.Shuffles
import org.apache.spark.sql.penstock.telemetry.RegionLoad
import org.apache.spark.util.MutablePair
import org.apache.spark.{PartitionIdPassthrough, ShuffleDependency, SparkEnv}

/**
 * A shuffle exchange that writes one block per shard and is read by N tasks, bound to shards at the barrier, or by shard
 * where what is above is to see a partition for each. The class
 * itself is per Spark version (its constructor is); all behaviour is here. Stays a [[ShuffleExchangeExec]] for the rules
 * that look for one.
 */
trait RoutedExchangeLike extends ShuffleExchangeExec {
  private def partitioning: ShardPartitioning = outputPartitioning.asInstanceOf[ShardPartitioning]

  /** What the tasks measure that read it. */
  def load: RegionLoad = partitioning.plan.routing.load

  override def nodeName: String = "RoutedExchange"

  /** Blocks per map task. */
  override def numPartitions: Int = RoutedExchangeLike.blocks(partitioning.plan.layout.shards)

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
      // Now, not when planning: a plan may drop this exchange for an equal one.
      partitioning.plan.routing.barrier.register(dep.shuffleId, dep.rdd.getNumPartitions, counts)
      metrics("numPartitions").set(numPartitions)
      val executionId = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
      SQLMetrics.postDriverMetricUpdates(sparkContext, executionId, metrics("numPartitions") :: Nil)
      dep
    }

  /** Rows with their shard: by the hash that Spark itself partitions state by, so state stays readable by partition. */
  private def withShards: RDD[Product2[Int, InternalRow]] = {
    val keys = boundKeys
    val layout = partitioning.plan.layout
    // Spark's own shuffle writers serialize a row before they ask for the next.
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
    throw new UnsupportedOperationException("a routed exchange is read by its binding, never adaptively")
}

object RoutedExchangeLike {

  /**
   * Blocks that a map task declares, of which the first S are used: enough for Spark to choose its serialized writer,
   * which sorts and writes one file, over the one that opens a file per block.
   */
  def blocks(shards: Int): Int =
    math.max(shards, SparkEnv.get.conf.get(config.SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD) + 1)
}
