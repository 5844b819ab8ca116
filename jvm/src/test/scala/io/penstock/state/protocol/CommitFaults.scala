package io.penstock.state.protocol

import io.penstock.state.protocol.CommitSetups._
import io.penstock.state.protocol.Mutation._

/** The mutations of the protocol, and how the properties detect each. */
object CommitFaults {

  /**
   * @param in
   *   Setup in which the mutation is detected
   * @param violation
   *   Part of the message of the violated property
   * @param steps
   *   Relevant steps of the shortest trace, in order and including the last one
   */
  final case class Fault(mutation: Mutation, in: Setup, violation: String, steps: Seq[String])

  val Faults = Seq(
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
