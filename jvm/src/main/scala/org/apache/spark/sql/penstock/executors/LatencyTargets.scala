package org.apache.spark.sql.penstock.executors

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

/**
 * The latency that queries want, and what comes of it. Set with every batch, since it may change while a query runs.
 */
object LatencyTargets {

  /**
   * @param targetMs
   *   above 0
   * @param acts
   *   whether executors are asked for; else it is only told
   */
  final case class Target(targetMs: Int, acts: Boolean)

  private val targets = new ConcurrentHashMap[UUID, Target]()
  private val reasons = new ConcurrentHashMap[UUID, String]()

  /** @param targetMs 0: none */
  def set(run: UUID, targetMs: Int, acts: Boolean): Unit =
    if (targetMs > 0) targets.put(run, Target(targetMs, acts)): Unit else forget(run)

  def of(run: UUID): Option[Target] = Option(targets.get(run))

  def tell(run: UUID, reason: String): Unit = if (targets.containsKey(run)) reasons.put(run, reason): Unit

  /** Why there are so many executors. */
  def reason(run: UUID): Option[String] = Option(reasons.get(run))

  def forget(run: UUID): Unit = {
    targets.remove(run)
    reasons.remove(run): Unit
  }
}
