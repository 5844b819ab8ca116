package io.penstock.benchmarks.source

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

/**
 * Controls how many batches of a gated source may run. The driver opens a gate for one batch at a time, so that the
 * queries of a comparison take turns and never run at the same time.
 */
object Gate {
  private val opened = new ConcurrentHashMap[String, AtomicLong]()

  /** Allows one more batch of every source behind the gate. */
  def open(name: String): Unit = { counter(name).incrementAndGet(); () }

  /** Number of batches that the gate has allowed so far. */
  def batches(name: String): Long = counter(name).get()

  private def counter(name: String): AtomicLong = opened.computeIfAbsent(name, _ => new AtomicLong())
}
