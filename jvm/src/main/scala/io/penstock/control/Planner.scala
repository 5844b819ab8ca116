package io.penstock.control

import java.util.UUID

/** Plans between batches. It never makes a batch wait, and a batch never needs it. */
trait Planner {

  /** Hands over what a batch has measured, to be planned with. Returns at once. */
  def learn(measured: Measured): Unit

  /** The newest plan for a region, or why there is none. */
  def plan(run: UUID, region: Long): Either[String, Plan]

  /**
   * Finds out how many executors a query needs. Returns at once.
   *
   * @param use
   *   gets the number, or why there is none, on another thread
   */
  def scale(demand: Demand)(use: Either[String, Scaled] => Unit): Unit
}

/** Where nothing plans. */
final class NoPlanner(why: String) extends Planner {
  override def learn(measured: Measured): Unit = ()
  override def plan(run: UUID, region: Long): Either[String, Plan] = Left(why)
  override def scale(demand: Demand)(use: Either[String, Scaled] => Unit): Unit = use(Left(why))
}

object Planner {
  @volatile private var planner: Planner =
    new NoPlanner("the driver has no planner: Penstock's plugin did not start it")

  /** The planner of this driver. */
  def current: Planner = planner

  def use(other: Planner): Unit = planner = other
}
