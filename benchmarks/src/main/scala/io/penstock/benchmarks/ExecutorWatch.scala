package io.penstock.benchmarks

import java.util.concurrent.{ConcurrentHashMap, TimeoutException}

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler._

/** The executors of an application on a cluster, as its scheduler knows them. */
final class ExecutorWatch extends SparkListener {
  private val PatienceNs = 120L * 1000 * 1000 * 1000
  private val there = ConcurrentHashMap.newKeySet[String]()

  override def onExecutorAdded(event: SparkListenerExecutorAdded): Unit = there.add(event.executorId): Unit

  override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit = there.remove(event.executorId): Unit

  /** Waits until there are so many, and gives their ids. */
  def await(count: Int): Set[String] = {
    val end = System.nanoTime() + PatienceNs
    while (there.size != count) {
      if (System.nanoTime() > end) throw new TimeoutException(s"${there.size} executors, $count are expected")
      Thread.sleep(20)
    }
    there.asScala.toSet
  }
}
