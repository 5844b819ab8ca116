package org.apache.spark.sql.penstock.telemetry

import io.penstock.sharding.Layout

/** What an iterator that hands rows to an operator tells of that operator's part in them. */
private[telemetry] trait OperatorPart {

  /** It is asked for a row: the operator's turn ends, if it had one. */
  def ends(): Unit

  /** It handed a row over that is part of another one, which may be timed. On the task's own thread only. */
  def goesOn(): Unit

  /** It handed a row over, which is timed from now on. */
  def begins(nowNs: Long): Unit

  /** That has been timed; it had a key and a weight. */
  def timed(hash: Int, weight: Double): Unit

  /** Whether its rows come into the operator and are counted: not those that the operator hands on within itself. */
  def counts: Boolean

  /** It handed a row over that is to be counted. */
  def counted(hash: Int): Unit
}

/** Where nothing is divided: of the only operator of a region, or of none. */
private[telemetry] object Undivided extends OperatorPart {
  override def ends(): Unit = ()
  override def goesOn(): Unit = ()
  override def begins(nowNs: Long): Unit = ()
  override def timed(hash: Int, weight: Double): Unit = ()
  override def counts: Boolean = false
  override def counted(hash: Int): Unit = ()
}

/** Of one of several. */
final private[telemetry] class TimedPart(
    times: OperatorTimes,
    operator: Int,
    override val counts: Boolean,
    layout: Layout
) extends OperatorPart {
  private var below = OperatorTimes.Nobody

  override def ends(): Unit = if (below != OperatorTimes.Nobody) times.turnTo(below): Unit
  override def goesOn(): Unit = below = times.turnTo(operator)
  override def begins(nowNs: Long): Unit = times.begin(operator, nowNs)
  override def timed(hash: Int, weight: Double): Unit = times.end(layout.shardOf(hash), weight)
  override def counted(hash: Int): Unit = times.count(operator, layout.shardOf(hash))
}
