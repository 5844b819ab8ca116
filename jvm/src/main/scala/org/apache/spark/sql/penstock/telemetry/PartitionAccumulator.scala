package org.apache.spark.sql.penstock.telemetry

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.util.AccumulatorV2

/** Holds one value per partition of a stage. A task that runs again overwrites the value of its partition. */
abstract class PartitionAccumulator[T] extends AccumulatorV2[(Int, T), java.util.Map[Int, T]] {
  private val byPartition = new ConcurrentHashMap[Int, T]()

  protected def empty: PartitionAccumulator[T]

  override def isZero: Boolean = byPartition.isEmpty
  override def copy(): PartitionAccumulator[T] = {
    val c = empty
    c.byPartition.putAll(byPartition)
    c
  }
  override def reset(): Unit = byPartition.clear()
  override def add(v: (Int, T)): Unit = byPartition.put(v._1, v._2): Unit
  override def merge(other: AccumulatorV2[(Int, T), java.util.Map[Int, T]]): Unit = byPartition.putAll(other.value)
  override def value: java.util.Map[Int, T] = byPartition

  /** Number of partitions that have reported. */
  def reported: Int = byPartition.size
}
