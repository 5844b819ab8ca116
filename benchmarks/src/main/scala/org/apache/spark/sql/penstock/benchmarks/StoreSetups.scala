package org.apache.spark.sql.penstock.benchmarks

import java.util.concurrent.ConcurrentHashMap

/** The stores that are measured: JMH makes its own instances of the benchmark, which find them here. */
object StoreSetups {

  /** Keys of each store, where its size is not what is measured. */
  val Keys = 1000000

  private val setups = new ConcurrentHashMap[String, StoreSetup]()

  def nameOf(side: String, shape: StoreShape, keys: Int): String = s"$side ${shape.name} $keys"

  def add(name: String, setup: StoreSetup): Unit = setups.put(name, setup): Unit

  def remove(name: String): Unit = setups.remove(name): Unit

  def named(name: String): StoreSetup = setups.get(name)
}
