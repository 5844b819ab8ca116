package org.apache.spark.sql.penstock.benchmarks

import java.util.concurrent.ConcurrentHashMap

/** The measured stores. JMH creates instances of the benchmark itself, which look up their store here. */
object StoreSetups {

  /** Number of keys of a store in all benchmarks that do not compare sizes. */
  val Keys = 1000000

  private val setups = new ConcurrentHashMap[String, StoreSetup]()

  def nameOf(side: String, shape: StoreShape, keys: Int): String = s"$side ${shape.name} $keys"

  def add(name: String, setup: StoreSetup): Unit = setups.put(name, setup): Unit

  def remove(name: String): Unit = setups.remove(name): Unit

  def named(name: String): StoreSetup = setups.get(name)
}
