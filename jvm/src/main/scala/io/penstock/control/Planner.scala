package io.penstock.control

import java.util.UUID

import io.penstock.context.{Component, ComponentKey, DriverContext}

/** Makes plans between batches. A batch never waits for a plan and can run without one. */
trait Planner extends Component {

  /** Passes the measurements of a batch to the planner. Returns at once. */
  def learn(measured: Measured): Unit

  /** The newest plan for a region, or the reason why there is none. */
  def plan(run: UUID, region: Long): Either[String, Plan]

  /**
   * Computes how many executors a query needs. Returns at once.
   *
   * @param use
   *   called on another thread with the number of executors, or with the reason why there is none
   */
  def scale(demand: Demand)(use: Either[String, Scaled] => Unit): Unit
}

/** A planner that makes no plans. */
final class NoPlanner(why: String) extends Planner {
  override def learn(measured: Measured): Unit = ()
  override def plan(run: UUID, region: Long): Either[String, Plan] = Left(why)
  override def scale(demand: Demand)(use: Either[String, Scaled] => Unit): Unit = use(Left(why))
  override def held: Map[String, Long] = Map.empty
  override def close(): Unit = ()
}

object Planner extends ComponentKey[Planner](DriverContext) {

  /** The planner of this driver; one that makes no plans if the plugin did not start a planner. */
  override def current: Planner =
    find.getOrElse(new NoPlanner("the driver has no planner because Penstock's plugin did not start it"))
}
