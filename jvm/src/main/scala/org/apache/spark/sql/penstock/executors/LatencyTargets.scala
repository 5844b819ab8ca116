package org.apache.spark.sql.penstock.executors

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import io.penstock.context.{Component, ComponentKey, DriverContext}

/**
 * Latency targets of queries, and the reasons for the resulting number of executors. Targets are set with every batch,
 * because they may change while a query runs.
 */
final class LatencyTargets extends Component {
  import LatencyTargets.Target

  private val targets = new ConcurrentHashMap[UUID, Target]()
  private val reasons = new ConcurrentHashMap[UUID, String]()

  /** Sets the target of a run. A `targetMs` of 0 removes it. */
  def set(run: UUID, targetMs: Int, acts: Boolean): Unit =
    if (targetMs > 0) targets.put(run, Target(targetMs, acts)): Unit else forget(run)

  def of(run: UUID): Option[Target] = Option(targets.get(run))

  def tell(run: UUID, reason: String): Unit = if (targets.containsKey(run)) reasons.put(run, reason): Unit

  /** Reason for the number of executors. */
  def reason(run: UUID): Option[String] = Option(reasons.get(run))

  def forget(run: UUID): Unit = {
    targets.remove(run)
    reasons.remove(run): Unit
  }

  override def held: Map[String, Long] = Map("targets" -> targets.size.toLong, "reasons" -> reasons.size.toLong)

  override def close(): Unit = {
    targets.clear()
    reasons.clear()
  }
}

object LatencyTargets extends ComponentKey[LatencyTargets](DriverContext) {

  /**
   * Latency target of a query.
   *
   * @param targetMs
   *   The target in milliseconds, above 0
   * @param acts
   *   Whether executors are requested and released; otherwise decisions are only reported
   */
  final case class Target(targetMs: Int, acts: Boolean)
}
