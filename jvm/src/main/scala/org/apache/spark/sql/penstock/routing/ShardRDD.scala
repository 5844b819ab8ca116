package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}
import org.apache.spark.{Dependency, Partition, ShuffleDependency, TaskContext}

/** Reads a routed exchange with one partition per shard. */
final private class ShardRDD(
    shards: Int,
    private var dep: ShuffleDependency[Int, InternalRow, InternalRow],
    metrics: Map[String, SQLMetric]
) extends RDD[InternalRow](dep.rdd.context, Nil) {
  RoutedShuffleRDD.readInBatches(context)

  override def getDependencies: Seq[Dependency[_]] = List(dep)

  override protected def getPartitions: Array[Partition] = Array.tabulate[Partition](shards)(RoutedPartition(_))

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val reporter = new SQLShuffleReadMetricsReporter(context.taskMetrics().createTempShuffleReadMetrics(), metrics)
    BlockList.read(dep, Seq((split.index, split.index + 1)), context, reporter)
  }

  override def clearDependencies(): Unit = {
    super.clearDependencies()
    dep = null
  }
}
