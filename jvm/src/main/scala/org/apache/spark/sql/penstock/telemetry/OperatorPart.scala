package org.apache.spark.sql.penstock.telemetry

import io.penstock.sharding.Layout

/**
 * Receives events of an iterator that hands rows to one operator, to measure that operator's part in the time of the
 * rows.
 */
private[telemetry] trait OperatorPart {

  /** The operator requests the next row: its turn ends, if it had one. */
  def ends(): Unit

  /**
   * The iterator handed over a row that belongs to the processing of another row, which may be timed. Only on the
   * task's own thread.
   */
  def goesOn(): Unit

  /** The iterator handed over a row that is timed from now on. */
  def begins(nowNs: Long): Unit

  /** The timing of a row has ended. The row has the hash of its key and a weight. */
  def timed(hash: Int, weight: Double): Unit

  /** Whether the iterator's rows are counted. Rows that pass between nodes of the same operator are not. */
  def counts: Boolean

  /** The iterator handed over a row that is to be counted. */
  def counted(hash: Int): Unit
}

/** Ignores all events. Used if the region has only one operator, or the operator does not belong to the region. */
private[telemetry] object Undivided extends OperatorPart {
  override def ends(): Unit = ()
  override def goesOn(): Unit = ()
  override def begins(nowNs: Long): Unit = ()
  override def timed(hash: Int, weight: Double): Unit = ()
  override def counts: Boolean = false
  override def counted(hash: Int): Unit = ()
}

/** Part of one of several operators of a region. */
final private[telemetry] class TimedPart(
    times: OperatorTimes,
    operator: Int,
    override val counts: Boolean,
    layout: Layout
) extends OperatorPart {
  private var below = OperatorTimes.NoOperator

  override def ends(): Unit = if (below != OperatorTimes.NoOperator) times.turnTo(below): Unit
  override def goesOn(): Unit = below = times.turnTo(operator)
  override def begins(nowNs: Long): Unit = times.begin(operator, nowNs)
  override def timed(hash: Int, weight: Double): Unit = times.end(layout.shardOf(hash), weight)
  override def counted(hash: Int): Unit = times.count(operator, layout.shardOf(hash))
}
