package io.penstock.state.protocol

import io.penstock.state.protocol.Bounds.Run

/** Bounds within which [[CommitModelSuite]] searches. */
object CommitSetups {

  /**
   * @param states
   *   Least number of states that the search must visit
   * @param steps
   *   Parts of step names that must occur somewhere
   */
  final case class Setup(name: String, bounds: Bounds, states: Int, steps: Seq[String])

  private val one = Run(Vector(Vector(0)))
  private val retried = one.copy(retries = 1)
  private val twoTasks = Run(Vector(Vector(0), Vector(1)))
  private val twoShards = Run(Vector(Vector(0, 1)))

  val Tasks = Setup(
    "several tasks, one retried, then a run with one task for all shards",
    Bounds(batches = 2, Vector(twoTasks.copy(retries = 1), twoShards), retain = 3),
    states = 590,
    Seq("and is lost", "is dead", "commits")
  )
  val Generations = Setup(
    "several generations of each batch",
    Bounds(batches = 3, Vector(retried, retried), retain = 3),
    states = 740,
    Seq("and is lost", "is dead", "commits")
  )
  val Cleaning = Setup(
    "cleaning",
    Bounds(batches = 5, Vector(one, one, one), retain = 1, slowCleaner = true),
    states = 4700,
    Seq("reads manifests", "deletes", "is dead")
  )
  val Rewinding = Setup(
    "rewinding",
    Bounds(batches = 6, Vector(one, one, one), retain = 2, rewinds = true),
    states = 7500,
    Seq("is rewound", "deletes", "is dead")
  )
  val Snapshots = Setup(
    "slow snapshots",
    Bounds(batches = 6, Vector(one, one), retain = 1, snapshots = true),
    states = 15000,
    Seq("is reported", "deletes", "is dead")
  )
  private val endings = Seq("has offsets", "is committed", "it finds manifest")
  val TwoRuns = Setup(
    "two runs alive",
    Bounds(batches = 4, Vector(one, one, one), retain = 2, alive = 2),
    states = 14000,
    endings
  )
  val TwoRunsRetried = Setup(
    "two runs alive, with a retried attempt",
    Bounds(batches = 3, Vector(retried, one, one), retain = 2, alive = 2),
    states = 27000,
    endings :+ "and is lost"
  )
  val TwoRunsTasks = Setup(
    "two runs alive, with other tasks",
    Bounds(batches = 3, Vector(twoTasks, twoShards, twoShards), retain = 2, alive = 2),
    states = 17500,
    endings
  )
  val TwoRunsCleaning = Setup(
    "two runs alive, each with a cleaner",
    Bounds(batches = 4, Vector(one, one, one), retain = 1, alive = 2),
    states = 20500,
    endings :+ "deletes"
  )
  val TwoRunsSlowCleaning = Setup(
    "two runs alive, each with a slow cleaner",
    Bounds(batches = 5, Vector(one, one), retain = 1, alive = 2, slowCleaner = true),
    states = 18000,
    endings ++ Seq("reads manifests", "deletes")
  )
  val TwoRunsSnapshots = Setup(
    "two runs alive, and snapshots",
    Bounds(batches = 5, Vector(one, one), retain = 1, alive = 2, snapshots = true),
    states = 76500,
    endings ++ Seq("is reported", "deletes")
  )
  val ThreeRuns = Setup(
    "three runs alive",
    Bounds(batches = 4, Vector(one, one, one), retain = 2, alive = 3),
    states = 42000,
    endings
  )

  private val slow = twoTasks.copy(slow = true)
  private val both = Set(0, 1)
  val Speculation = Setup(
    "several attempts of a task alive at the same time",
    Bounds(batches = 2, Vector(slow.copy(retries = 2), twoShards), retain = 3),
    states = 11200,
    Seq("waits for a manifest", "is durable", "is lost", "is refused", "is dead", "commits")
  )
  val StageAttempts = Setup(
    "a stage that is submitted again",
    Bounds(batches = 2, Vector(slow.copy(resubmits = 1), twoShards), retain = 3),
    states = 36900,
    Seq("is submitted again", "is durable", "is lost", "is refused", "is dead", "commits")
  )
  val StageAttemptsRetried = Setup(
    "a stage that is submitted again, with a retried attempt",
    Bounds(batches = 1, Vector(slow.copy(retries = 1, resubmits = 1)), retain = 3),
    states = 12700,
    Seq("is submitted again", "is durable", "is lost", "is refused", "commits")
  )
  val Actions = Setup(
    "several actions on a batch, one with a stage that is submitted again",
    Bounds(batches = 1, Vector(slow.copy(retries = 1, parts = Vector(both, both), resubmits = 1)), retain = 3),
    states = 82800,
    Seq("is submitted again", "is durable", "is lost", "is refused", "commits")
  )
  val PartialAction = Setup(
    "a further action that runs a part of the tasks",
    Bounds(batches = 2, Vector(slow.copy(retries = 1, parts = Vector(both, Set(0)))), retain = 3),
    states = 1480,
    Seq("is durable", "is lost", "is refused", "commits")
  )
  val PartialActions = Setup(
    "further actions that run all tasks together",
    Bounds(batches = 1, Vector(slow.copy(retries = 2, parts = Vector(both, Set(0), Set(0), Set(1)))), retain = 3),
    states = 2850,
    Seq("is durable", "is lost", "is refused", "commits")
  )
  val PartsOfOne = Setup(
    "actions that run all tasks together, then one that runs them all",
    Bounds(batches = 1, Vector(slow.copy(retries = 2, parts = Vector(Set(1), Set(0), both))), retain = 3),
    states = 4300,
    Seq("is durable", "is lost", "is refused", "commits")
  )
  val ParallelActions = Setup(
    "several actions on a batch at the same time",
    Bounds(batches = 1, Vector(slow.copy(parts = Vector(both, both), parallel = true)), retain = 3),
    states = 11500,
    Seq("and changes nothing", "is durable", "commits")
  )
  val ParallelActionsRetried = Setup(
    "several actions on a batch at the same time, with a retried attempt",
    Bounds(batches = 1, Vector(slow.copy(retries = 1, parts = Vector(both, both), parallel = true)), retain = 3),
    states = 72300,
    Seq("and changes nothing", "is durable", "is lost", "commits")
  )

  val Setups = Seq(
    Tasks,
    Generations,
    Cleaning,
    Rewinding,
    Snapshots,
    TwoRuns,
    TwoRunsRetried,
    TwoRunsTasks,
    TwoRunsCleaning,
    TwoRunsSlowCleaning,
    TwoRunsSnapshots,
    ThreeRuns,
    Speculation,
    StageAttempts,
    StageAttemptsRetried,
    Actions,
    PartialAction,
    PartialActions,
    PartsOfOne,
    ParallelActions,
    ParallelActionsRetried
  )
}
