package io.penstock.benchmarks.source

import java.util.concurrent.ConcurrentHashMap

/**
 * Rows that arrive at a fixed rate, independent of how fast they are processed.
 *
 * @param startMs
 *   arrival time of the first row, on the system's clock
 * @param rowsPerSecond
 *   rate of arrival
 * @param rows
 *   total number of rows
 */
final case class Arrivals(startMs: Long, rowsPerSecond: Double, rows: Long) {

  /** Number of rows that have arrived at a time of the system's clock. */
  def until(ms: Long): Long = math.max(0L, math.min(rows, ((ms - startMs) * rowsPerSecond / 1000).toLong))

  /** Arrival time of a row, on the system's clock. */
  def ms(row: Long): Double = startMs + row * 1000 / rowsPerSecond
}

object Arrivals {
  private val byName = new ConcurrentHashMap[String, Arrivals]()

  /** Starts the arrival of rows at all sources with this name. */
  def start(name: String, rowsPerSecond: Double, rows: Long): Arrivals = {
    val arrivals = Arrivals(System.currentTimeMillis(), rowsPerSecond, rows)
    byName.put(name, arrivals)
    arrivals
  }

  /** Number of rows that have arrived by now. */
  def soFar(name: String): Long = Option(byName.get(name)).fold(0L)(_.until(System.currentTimeMillis()))
}
