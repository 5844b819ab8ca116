package io.penstock.state.protocol

import io.penstock.state.protocol.Bounds.Run
import io.penstock.state.protocol.Mutation._

/**
 * Checks every history of the commit protocol (docs/PROTOCOL.md, section 7) within small bounds. Each setup covers some
 * rules, and together they cover all.
 */
class CommitModelSuite extends ModelSuite {
  import CommitModelSuite._

  Setups.foreach { setup =>
    test(s"no shard is lost or counted twice, and no needed file is missing: ${setup.name}") {
      assertRight(CommitModel(setup.bounds).search(Limit), setup.states, setup.steps)
    }
  }

  Seq(Tasks, Generations, Cleaning, Rewinding, TwoRuns, Speculation).foreach { setup =>
    test(s"omitting unread parts of states makes no difference: ${setup.name}") {
      val model = CommitModel(setup.bounds)
      val all = model.copy(forgets = false).search(Limit)
      info(s"${all.states.size} states")
      assert(all.wrong.isEmpty)
      assert(all.states.iterator.map(model.withoutUnread).toSet == model.search(Limit).states)
    }
  }

  test("every mutation has an expected trace") {
    assert(Faults.map(_.mutation).distinct == Mutation.All)
  }

  Faults.foreach { fault =>
    test(s"the properties detect ${fault.mutation}: ${fault.in.name}") {
      assertWrong(CommitModel(fault.in.bounds, Some(fault.mutation)).search(Limit), fault.violation, fault.steps)
    }
  }

  test("some rules are not needed while at most one run is alive") {
    for {
      mutation <- Seq(RetainForOneRun, CleanSuperseded, CleanUnnamed, HistoryByNewestGeneration, OffsetsLast)
      setup <- Seq(Tasks, Generations, Cleaning)
    } assert(CommitModel(setup.bounds, Some(mutation)).search(Limit).wrong.isEmpty, s"$mutation, ${setup.name}")
  }
}

object CommitModelSuite {
  private val Limit = 200000

  /**
   * @param states
   *   Least number of states that the search must visit
   * @param steps
   *   Parts of step names that must occur somewhere
   */
  final private case class Setup(name: String, bounds: Bounds, states: Int, steps: Seq[String])

  private val one = Run(Vector(Vector(0)))
  private val retried = one.copy(retries = 1)
  private val twoTasks = Run(Vector(Vector(0), Vector(1)))
  private val twoShards = Run(Vector(Vector(0, 1)))

  private val Tasks = Setup(
    "several tasks, one retried, then a run with one task for all shards",
    Bounds(batches = 2, Vector(twoTasks.copy(retries = 1), twoShards), retain = 3),
    states = 590,
    Seq("and is lost", "is dead", "commits")
  )
  private val Generations = Setup(
    "several generations of each batch",
    Bounds(batches = 3, Vector(retried, retried), retain = 3),
    states = 740,
    Seq("and is lost", "is dead", "commits")
  )
  private val Cleaning = Setup(
    "cleaning",
    Bounds(batches = 5, Vector(one, one, one), retain = 1, slowCleaner = true),
    states = 4700,
    Seq("reads manifests", "deletes", "is dead")
  )
  private val Rewinding = Setup(
    "rewinding",
    Bounds(batches = 6, Vector(one, one, one), retain = 2, rewinds = true),
    states = 7500,
    Seq("is rewound", "deletes", "is dead")
  )
  private val Snapshots = Setup(
    "slow snapshots",
    Bounds(batches = 6, Vector(one, one), retain = 1, snapshots = true),
    states = 15000,
    Seq("is reported", "deletes", "is dead")
  )
  private val endings = Seq("has offsets", "is committed", "it finds manifest")
  private val TwoRuns = Setup(
    "two runs alive",
    Bounds(batches = 4, Vector(one, one, one), retain = 2, alive = 2),
    states = 14000,
    endings
  )
  private val TwoRunsRetried = Setup(
    "two runs alive, with a retried attempt",
    Bounds(batches = 3, Vector(retried, one, one), retain = 2, alive = 2),
    states = 27000,
    endings :+ "and is lost"
  )
  private val TwoRunsTasks = Setup(
    "two runs alive, with other tasks",
    Bounds(batches = 3, Vector(twoTasks, twoShards, twoShards), retain = 2, alive = 2),
    states = 17500,
    endings
  )
  private val TwoRunsCleaning = Setup(
    "two runs alive, each with a cleaner",
    Bounds(batches = 4, Vector(one, one, one), retain = 1, alive = 2),
    states = 20500,
    endings :+ "deletes"
  )
  private val TwoRunsSlowCleaning = Setup(
    "two runs alive, each with a slow cleaner",
    Bounds(batches = 5, Vector(one, one), retain = 1, alive = 2, slowCleaner = true),
    states = 18000,
    endings ++ Seq("reads manifests", "deletes")
  )
  private val TwoRunsSnapshots = Setup(
    "two runs alive, and snapshots",
    Bounds(batches = 5, Vector(one, one), retain = 1, alive = 2, snapshots = true),
    states = 76500,
    endings ++ Seq("is reported", "deletes")
  )
  private val ThreeRuns = Setup(
    "three runs alive",
    Bounds(batches = 4, Vector(one, one, one), retain = 2, alive = 3),
    states = 42000,
    endings
  )

  private val slow = twoTasks.copy(slow = true)
  private val both = Set(0, 1)
  private val Speculation = Setup(
    "several attempts of a task alive at the same time",
    Bounds(batches = 2, Vector(slow.copy(retries = 2), twoShards), retain = 3),
    states = 11200,
    Seq("waits for a manifest", "is durable", "is lost", "is refused", "is dead", "commits")
  )
  private val StageAttempts = Setup(
    "a stage that is submitted again",
    Bounds(batches = 2, Vector(slow.copy(resubmits = 1), twoShards), retain = 3),
    states = 36900,
    Seq("is submitted again", "is durable", "is lost", "is refused", "is dead", "commits")
  )
  private val StageAttemptsRetried = Setup(
    "a stage that is submitted again, with a retried attempt",
    Bounds(batches = 1, Vector(slow.copy(retries = 1, resubmits = 1)), retain = 3),
    states = 12700,
    Seq("is submitted again", "is durable", "is lost", "is refused", "commits")
  )
  private val Actions = Setup(
    "several actions on a batch, one with a stage that is submitted again",
    Bounds(batches = 1, Vector(slow.copy(retries = 1, parts = Vector(both, both), resubmits = 1)), retain = 3),
    states = 82800,
    Seq("is submitted again", "is durable", "is lost", "is refused", "commits")
  )
  private val PartialAction = Setup(
    "a further action that runs a part of the tasks",
    Bounds(batches = 2, Vector(slow.copy(retries = 1, parts = Vector(both, Set(0)))), retain = 3),
    states = 1480,
    Seq("is durable", "is lost", "is refused", "commits")
  )
  private val PartialActions = Setup(
    "further actions that run all tasks together",
    Bounds(batches = 1, Vector(slow.copy(retries = 2, parts = Vector(both, Set(0), Set(0), Set(1)))), retain = 3),
    states = 2850,
    Seq("is durable", "is lost", "is refused", "commits")
  )
  private val PartsOfOne = Setup(
    "actions that run all tasks together, then one that runs them all",
    Bounds(batches = 1, Vector(slow.copy(retries = 2, parts = Vector(Set(1), Set(0), both))), retain = 3),
    states = 4300,
    Seq("is durable", "is lost", "is refused", "commits")
  )
  private val ParallelActions = Setup(
    "several actions on a batch at the same time",
    Bounds(batches = 1, Vector(slow.copy(parts = Vector(both, both), parallel = true)), retain = 3),
    states = 11500,
    Seq("and changes nothing", "is durable", "commits")
  )
  private val ParallelActionsRetried = Setup(
    "several actions on a batch at the same time, with a retried attempt",
    Bounds(batches = 1, Vector(slow.copy(retries = 1, parts = Vector(both, both), parallel = true)), retain = 3),
    states = 72300,
    Seq("and changes nothing", "is durable", "is lost", "commits")
  )

  private val Setups = Seq(
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

  /**
   * @param in
   *   Setup in which the mutation is detected
   * @param violation
   *   Part of the message of the violated property
   * @param steps
   *   Relevant steps of the shortest trace, in order and including the last one
   */
  final private case class Fault(mutation: Mutation, in: Setup, violation: String, steps: Seq[String])

  private val Faults = Seq(
    Fault(AnswerFirst, Tasks, "batch 0 is committed and has no manifest", Seq("reports", "commits batch 0")),
    Fault(
      AcceptLate,
      Generations,
      "manifest 1.0 does not have every batch once",
      Seq("manifest 0.0", "logs offsets of batch 1", "attempt 0.1 of batch 0 in run 0 reports, manifest 1.0")
    ),
    Fault(
      CountTasksOnce,
      Tasks,
      "manifest 0.0 does not have every batch once",
      Seq("attempt 0.0 of batch 0 in run 0 reports", "attempt 0.1 of batch 0 in run 0 reports, manifest 0.0")
    ),
    Fault(
      LastCommitWins,
      Speculation,
      "batch 0 is committed with attempt 0.1 of batch 0 in run 0, which Spark has not counted",
      Seq(
        "attempt 0.0 of batch 0 in run 0 reports",
        "attempt 0.1 of batch 0 in run 0 reports",
        "attempt 0.0 of batch 0 in run 0 succeeds",
        "manifest 0.0 is durable",
        "commits batch 0"
      )
    ),
    Fault(
      LastCommitWins,
      StageAttempts,
      ".0 of batch 0 in run 0, which Spark has not counted",
      Seq("is submitted again", ".0 of batch 0 in run 0 reports", "is durable", "commits batch 0")
    ),
    Fault(
      LastCommitWins,
      ParallelActions,
      "though stage 1 has completed",
      Seq("of stage 1.0 of batch 0 in run 0 reports", ".0 of batch 0 in run 0 reports", "is durable", "commits batch 0")
    ),
    Fault(
      AnswerCopies,
      Speculation,
      "batch 0 is committed and has no manifest",
      Seq(
        "attempt 0.0 of batch 0 in run 0 reports, and waits for a manifest",
        "attempt 0.1 of batch 0 in run 0 reports, and changes nothing",
        "attempt 0.1 of batch 0 in run 0 succeeds",
        "commits batch 0"
      )
    ),
    Fault(
      KeepFailed,
      Speculation,
      "batch 0 is committed and has no manifest",
      Seq(
        "attempt 0.0 of batch 0 in run 0 is lost",
        "attempt 0.1 of batch 0 in run 0 reports, and changes nothing",
        "commits batch 0"
      )
    ),
    Fault(
      WriteIncompleteRound,
      PartialAction,
      "though only a part of the shards was reported after stage 0",
      Seq("attempt 0.0 of stage 1.0 of batch 0 in run 0 reports", "manifest 0.1 is durable", "commits batch 0")
    ),
    Fault(
      IgnoreFurtherRound,
      Actions,
      "though stage 1 has completed",
      Seq("manifest 0.0 is durable", "stage 1.0 of batch 0 in run 0 reports", "commits batch 0")
    ),
    Fault(
      AnswerFurtherFirst,
      Actions,
      "though stage 1 has completed",
      Seq(
        "manifest 0.0 is durable",
        "stage 1.0 of batch 0 in run 0 reports, and waits for a manifest",
        "stage 1.0 of batch 0 in run 0 succeeds",
        "commits batch 0"
      )
    ),
    Fault(
      AnswerUnnamed,
      StageAttempts,
      ".0 of batch 0 in run 0, which Spark has not counted",
      Seq(
        "is submitted again",
        ".0 of batch 0 in run 0 reports",
        "reports, and waits for a manifest",
        "manifest 0.0 is durable",
        "commits batch 0"
      )
    ),
    Fault(
      StartFromFirstGeneration,
      Generations,
      "manifest 1.0 does not go on from where 0.1 ended",
      Seq(
        "manifest 0.0",
        "manifest 0.1",
        "commits batch 0",
        "run 1 starts, run 0 is dead",
        "manifest 1.0",
        "commits batch 1"
      )
    ),
    Fault(
      ForgetGenerations,
      Generations,
      "manifest 1.0 does not go on from where 0.1 ended",
      Seq(
        "manifest 0.0",
        "manifest 0.1",
        "run 1 starts, run 0 is dead",
        "manifest 0.0",
        "manifest 1.0",
        "commits batch 1"
      )
    ),
    Fault(
      ForgetLaterGenerations,
      Rewinding,
      "is ended, and no other one was alive",
      Seq("is rewound to batch 0", "it finds manifest 2.0")
    ),
    Fault(
      CleanByAge,
      Cleaning,
      "needs the file of attempt 0.0 of batch 0",
      Seq("manifest 3.0", "reads manifests", "deletes")
    ),
    Fault(
      RetainTooFew,
      Cleaning,
      "batch 0 is committed and has no manifest",
      Seq("commits batch 0", "manifest 1.0", "reads manifests", "deletes")
    ),
    // Run 1 is late with batch 0 and run 2 with batch 1. Spark's logs have let each of them run its batch.
    Fault(
      RetainForOneRun,
      TwoRunsCleaning,
      "manifest 1.1, the newest of a committed batch, needs the file of attempt 0.0 of batch 0 in run 1",
      Seq(
        "run 1 reports, manifest 0.1",
        "run 2 starts from manifest 0.1",
        "the cleaner of run 0 deletes",
        "run 2 reports, manifest 1.1"
      )
    ),
    Fault(
      CleanSuperseded,
      TwoRuns,
      "manifest 1.0 builds on 0.0, which is not there",
      Seq(
        "run 0 reports, manifest 0.0",
        "run 0 reports, manifest 1.0",
        "run 1 reports, manifest 0.1",
        "cleaner of run 0 deletes"
      )
    ),
    Fault(
      CleanUnnamed,
      TwoRuns,
      "manifest 0.1, the newest of a committed batch, needs the file of attempt 0.0 of batch 0 in run 1",
      Seq("attempt 0.0 of batch 0 in run 1 writes", "cleaner of run 0 deletes", "run 1 reports, manifest 0.1")
    ),
    Fault(
      AnySnapshot,
      Snapshots,
      "manifest 5.0, the newest of a committed batch, needs the file of snapshot of version 1",
      Seq("snapshot of version 1", "manifest 4.0", "deletes", "manifest 5.0", "commits batch 5")
    ),
    Fault(
      HistoryByNewestGeneration,
      TwoRuns,
      "manifest 1.0 does not go on from where 0.1 ended",
      Seq(
        "run 0 reports, manifest 0.0",
        "run 0 reports, manifest 1.0",
        "run 0 commits batch 1",
        "run 1 reports, manifest 0.1"
      )
    ),
    Fault(
      OffsetsLast,
      TwoRuns,
      "manifest 0.1 has attempt 0.0 of batch 0 in run 1, which has read other rows than those that are logged",
      Seq("run 0 reports, manifest 0.0", "run 0 commits batch 0", "run 1 reports, manifest 0.1")
    )
  )
}
