package io.penstock.state.protocol

import io.penstock.state.protocol.Bounds.Run
import io.penstock.state.protocol.Mutation._
import org.scalatest.funsuite.AnyFunSuite

/**
 * Every history of the commit protocol, docs/PROTOCOL.md, section 7, within bounds: small ones that each have what some
 * rules are for, and that have all of them together.
 */
class CommitModelSuite extends AnyFunSuite {
  import CommitModelSuite._

  Setups.foreach { setup =>
    test(s"no shard is lost, none counts twice, and nothing that is needed is missing: ${setup.name}") {
      val found = CommitModel(setup.bounds).search(Limit)
      info(s"${found.states.size} states")
      assert(found.wrong.isEmpty)
      assert(found.states.size >= setup.states)
      // Histories are worth little in which what the bounds are for does not come about.
      setup.steps.foreach(step => assert(found.kinds.exists(_.contains(step)), step))
    }
  }

  Seq(Tasks, Generations, Cleaning, Rewinding, TwoRuns).foreach { setup =>
    test(s"what is left out of states makes no difference: ${setup.name}") {
      val model = CommitModel(setup.bounds)
      val all = model.copy(forgets = false).search(Limit)
      info(s"${all.states.size} states")
      assert(all.wrong.isEmpty)
      assert(all.states.iterator.map(model.withoutUnread).toSet == model.search(Limit).states)
    }
  }

  test("there is a trace for every mutation") {
    assert(Faults.map(_.mutation) == Mutation.All)
  }

  Faults.foreach { fault =>
    test(s"the properties find ${fault.mutation}") {
      val wrong = CommitModel(fault.in.bounds, Some(fault.mutation)).search(Limit).wrong
      assert(wrong.isDefined)
      wrong.foreach { w =>
        info((w.what +: w.trace).mkString("\n    "))
        assert(w.what.contains(fault.what))
        val rest = fault.steps.foldLeft(w.trace) { (trace, step) =>
          val from = trace.dropWhile(!_.contains(step))
          assert(from.nonEmpty, s"'$step' does not follow")
          from.drop(1)
        }
        assert(rest.isEmpty, "the trace goes on")
      }
    }
  }

  test("while one run at most is alive, some rules are not needed") {
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
   *   how many there are at least: a model that no longer goes everywhere says nothing
   * @param steps
   *   that are taken somewhere
   */
  final private case class Setup(name: String, bounds: Bounds, states: Int, steps: Seq[String])

  private val one = Run(Vector(Vector(0)))
  private val retried = one.copy(retries = 1)
  private val twoTasks = Run(Vector(Vector(0), Vector(1)))
  private val twoShards = Run(Vector(Vector(0, 1)))

  private val Tasks = Setup(
    "several tasks, one tried again, then a run with one task for all shards",
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
    "snapshots that take their time",
    Bounds(batches = 6, Vector(one, one), retain = 1, snapshots = true),
    states = 15000,
    Seq("is told", "deletes", "is dead")
  )
  private val endings = Seq("has offsets", "is committed", "it finds manifest")
  private val TwoRuns = Setup(
    "two runs alive",
    Bounds(batches = 4, Vector(one, one, one), retain = 2, alive = 2),
    states = 14000,
    endings
  )
  private val TwoRunsRetried = Setup(
    "two runs alive, an attempt tried again",
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
    endings ++ Seq("is told", "deletes")
  )
  private val ThreeRuns = Setup(
    "three runs alive",
    Bounds(batches = 4, Vector(one, one, one), retain = 2, alive = 3),
    states = 42000,
    endings
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
    ThreeRuns
  )

  /**
   * @param in
   *   where it is found
   * @param what
   *   is wrong then
   * @param steps
   *   of the shortest trace those that matter, in order, and its last one
   */
  final private case class Fault(mutation: Mutation, in: Setup, what: String, steps: Seq[String])

  private val Faults = Seq(
    Fault(AnswerFirst, Tasks, "batch 0 is committed and has no manifest", Seq("tells", "commits batch 0")),
    Fault(
      AcceptLate,
      Generations,
      "manifest 1.0 does not have every batch once",
      Seq("manifest 0.0", "logs offsets of batch 1", "attempt 0.1 of batch 0 in run 0 tells, manifest 1.0")
    ),
    Fault(
      CountTasksOnce,
      Tasks,
      "manifest 0.0 does not have every batch once",
      Seq("attempt 0.0 of batch 0 in run 0 tells", "attempt 0.1 of batch 0 in run 0 tells, manifest 0.0")
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
    // Run 1 is late with batch 0, run 2 with batch 1, each told by Spark's logs that it is the one to run it.
    Fault(
      RetainForOneRun,
      TwoRunsCleaning,
      "manifest 1.1, the newest of a committed batch, needs the file of attempt 0.0 of batch 0 in run 1",
      Seq(
        "run 1 tells, manifest 0.1",
        "run 2 starts from manifest 0.1",
        "the cleaner of run 0 deletes",
        "run 2 tells, manifest 1.1"
      )
    ),
    Fault(
      CleanSuperseded,
      TwoRuns,
      "manifest 1.0 builds on 0.0, which is not there",
      Seq(
        "run 0 tells, manifest 0.0",
        "run 0 tells, manifest 1.0",
        "run 1 tells, manifest 0.1",
        "cleaner of run 0 deletes"
      )
    ),
    Fault(
      CleanUnnamed,
      TwoRuns,
      "manifest 0.1, the newest of a committed batch, needs the file of attempt 0.0 of batch 0 in run 1",
      Seq("attempt 0.0 of batch 0 in run 1 writes", "cleaner of run 0 deletes", "run 1 tells, manifest 0.1")
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
        "run 0 tells, manifest 0.0",
        "run 0 tells, manifest 1.0",
        "run 0 commits batch 1",
        "run 1 tells, manifest 0.1"
      )
    ),
    Fault(
      OffsetsLast,
      TwoRuns,
      "manifest 0.1 has attempt 0.0 of batch 0 in run 1, which has read other rows than those that are logged",
      Seq("run 0 tells, manifest 0.0", "run 0 commits batch 0", "run 1 tells, manifest 0.1")
    )
  )
}
