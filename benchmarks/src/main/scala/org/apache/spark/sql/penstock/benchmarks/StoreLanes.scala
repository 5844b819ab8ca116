package org.apache.spark.sql.penstock.benchmarks

import java.util.concurrent.ConcurrentHashMap

/** The stores that are measured: JMH makes its own instances of the benchmark, which find them here. */
object StoreLanes {

  /** Keys of each store, where its size is not what is measured. */
  val Keys = 1000000

  private val lanes = new ConcurrentHashMap[String, StoreLane]()

  def nameOf(side: String, shape: StoreShape, keys: Int): String = s"$side ${shape.name} $keys"

  def add(name: String, lane: StoreLane): Unit = lanes.put(name, lane): Unit

  def remove(name: String): Unit = lanes.remove(name): Unit

  def named(name: String): StoreLane = lanes.get(name)
}
