package io.penstock.benchmarks.source

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

/**
 * How many micro-batches of a gated source may run. The driver opens a gate one batch at a time, so that the queries of
 * a comparison take turns and never run at the same time.
 */
object Gate {
  private val opened = new ConcurrentHashMap[String, AtomicLong]()

  /** Lets one more batch of every source behind the gate run. */
  def open(name: String): Unit = { of(name).incrementAndGet(); () }

  /** Batches that the gate has let through, ever. */
  def batches(name: String): Long = of(name).get()

  private def of(name: String): AtomicLong = opened.computeIfAbsent(name, _ => new AtomicLong())
}
