package io.penstock.routing

/**
 * Policy that chooses the number of tasks of a batch, as the setting `spark.penstock.tasks` names it.
 *
 * @param followsCores
 *   whether the number of tasks changes with the number of cores
 * @param isPlanned
 *   whether the planner sidecar chooses the number
 */
sealed abstract class TasksChoice(
    override val toString: String,
    val followsCores: Boolean = false,
    val isPlanned: Boolean = false
) {

  /**
   * @param planned
   *   returns the number of tasks that the planner wants in a region; None if there is no plan
   */
  def policy(planned: Long => Option[Int]): TaskCountPolicy
}

object TasksChoice {

  /** One task per core of the application, at most one per shard. */
  case object Cores extends TasksChoice("cores", followsCores = true) {
    override def policy(planned: Long => Option[Int]): TaskCountPolicy = CoresPolicy
  }

  /** The number of tasks that the planner sidecar finds best. */
  case object Auto extends TasksChoice("auto", followsCores = true, isPlanned = true) {
    override def policy(planned: Long => Option[Int]): TaskCountPolicy = new PlannedPolicy(planned)
  }

  /** A fixed number of tasks, at most one per shard. */
  final case class Fixed(count: Int) extends TasksChoice(count.toString) {
    override def policy(planned: Long => Option[Int]): TaskCountPolicy = new FixedPolicy(count)
  }

  /** A random number of tasks in every batch, for tests. */
  final case class Chaos(seed: Long) extends TasksChoice(s"chaos($seed)") {
    override def policy(planned: Long => Option[Int]): TaskCountPolicy = new ChaosPolicy(seed)
  }

  /** Choices without a parameter. The first one is the default. */
  val named: Seq[TasksChoice] = Seq(Cores, Auto)

  /** Choices that take a seed, by name. */
  val seeded: Seq[(String, Long => TasksChoice)] = Seq("chaos" -> (Chaos(_)))
}
