package io.penstock.benchmarks.work

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.{LongAccumulator, LongAdder}

import org.apache.spark.TaskContext

/** Records the work of each batch, as reported by the user's function. Works only for tasks in the driver's JVM. */
object Served {
  final private class Work {
    val totalNs = new LongAdder
    val dearestNs = new LongAccumulator(math.max, 0L)
  }

  private val works = new ConcurrentHashMap[(String, Long), Work]()

  /** Records the work of a key. The task of the key calls it once per batch. */
  def note(run: String, ns: Long): Unit = {
    val batch = TaskContext.get().getLocalProperty("streaming.sql.batchId").toLong
    val work = works.computeIfAbsent((run, batch), _ => new Work)
    work.totalNs.add(ns)
    work.dearestNs.accumulate(ns)
  }

  /** Work of a batch and of its most expensive key, in ms. */
  def ofBatch(run: String, batch: Long): Map[String, Double] =
    Option(works.get((run, batch))).fold(Map.empty[String, Double]) { work =>
      Map("workMs" -> work.totalNs.sum() / 1e6, "dearestKeyMs" -> work.dearestNs.get() / 1e6)
    }
}
