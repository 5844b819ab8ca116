package io.penstock.benchmarks.source

import java.util.concurrent.ConcurrentHashMap

/**
 * Rows that arrive when they do, however fast they are worked on.
 *
 * @param startMs
 *   on the system's clock, of the first row
 * @param rows
 *   after which no more arrive
 */
final case class Arrivals(startMs: Long, rowsPerSecond: Double, rows: Long) {

  /** Rows that have arrived at a time of the system's clock. */
  def until(ms: Long): Long = math.max(0L, math.min(rows, ((ms - startMs) * rowsPerSecond / 1000).toLong))

  /** When a row arrives, on the system's clock. */
  def ms(row: Long): Double = startMs + row * 1000 / rowsPerSecond
}

object Arrivals {
  private val byName = new ConcurrentHashMap[String, Arrivals]()

  /** Lets rows arrive at every source of this name, from now on. */
  def start(name: String, rowsPerSecond: Double, rows: Long): Arrivals = {
    val arrivals = Arrivals(System.currentTimeMillis(), rowsPerSecond, rows)
    byName.put(name, arrivals)
    arrivals
  }

  /** Rows that have arrived by now. */
  def soFar(name: String): Long = Option(byName.get(name)).fold(0L)(_.until(System.currentTimeMillis()))
}
