package io.penstock.benchmarks

import java.util.concurrent.{ConcurrentHashMap, TimeoutException}

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler._

/** The executors of an application on a cluster, by the events of its scheduler. */
final class ExecutorWatch extends SparkListener {
  private val TimeoutNs = 120L * 1000 * 1000 * 1000
  private val executors = ConcurrentHashMap.newKeySet[String]()

  override def onExecutorAdded(event: SparkListenerExecutorAdded): Unit = executors.add(event.executorId): Unit

  override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit = executors.remove(event.executorId): Unit

  /** Waits until there are exactly `count` executors, and returns their ids. */
  def await(count: Int): Set[String] = {
    val end = System.nanoTime() + TimeoutNs
    while (executors.size != count) {
      if (System.nanoTime() > end)
        throw new TimeoutException(s"there are ${executors.size} executors after 120 s, expected $count")
      Thread.sleep(20)
    }
    executors.asScala.toSet
  }
}
