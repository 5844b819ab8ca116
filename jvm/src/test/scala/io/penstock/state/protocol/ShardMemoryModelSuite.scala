package io.penstock.state.protocol

import io.penstock.state.protocol.ShardMemoryMutation._

/** Checks every history of a shard in the memory of executors (docs/PROTOCOL.md, sections 7 and 13) within bounds. */
class ShardMemoryModelSuite extends ModelSuite {
  import ShardMemoryModelSuite._

  Setups.foreach { setup =>
    test(s"a task reads the content that its batch starts from: ${setup.name}") {
      assertRight(ShardMemoryModel(setup.bounds).search(Limit), setup.states, setup.steps)
    }
  }

  test("every mutation has an expected trace") {
    assert(Faults.map(_.mutation).distinct == ShardMemoryMutation.All)
  }

  Faults.foreach { fault =>
    test(s"the properties detect ${fault.mutation}: ${fault.in.name}") {
      assertWrong(ShardMemoryModel(fault.in.bounds, Some(fault.mutation)).search(Limit), fault.violation, fault.steps)
    }
  }
}

object ShardMemoryModelSuite {
  private val Limit = 200000

  /**
   * @param states
   *   Least number of states that the search must visit
   * @param steps
   *   Parts of step names that must occur somewhere
   */
  final private case class Setup(name: String, bounds: ShardMemoryBounds, states: Int, steps: Seq[String])

  private val attempts = Seq("starts on", "loads it", "writes", "reports", "is lost", "succeeds")

  private val OneExecutor = Setup(
    "one executor, attempts alive at the same time",
    ShardMemoryBounds(attempts = Vector(2, 2, 2), executors = 1),
    states = 58500,
    attempts ++ Seq("finds it", "folds a change set", "catches up")
  )
  private val Asking = Setup(
    "executors that ask each other, and one that ends",
    ShardMemoryBounds(attempts = Vector(1, 1, 1), ends = 1),
    states = 380,
    attempts ++ Seq("gives an image", "catches up", "ends")
  )
  private val HandOver = Setup(
    "hand-over in the middle of a batch, and the end of an executor",
    ShardMemoryBounds(attempts = Vector(2, 2), handsOver = true, ends = 1),
    states = 63000,
    attempts ++ Seq("finds it", "adopts", "gives an image", "gives a change set", "ends")
  )
  private val Snapshots = Setup(
    "snapshots",
    ShardMemoryBounds(attempts = Vector(1, 2, 1), executors = 1, snapshots = true),
    states = 2770,
    attempts ++ Seq("is written", "is reported", "with a snapshot")
  )
  private val HandOverSnapshots = Setup(
    "snapshots of what was handed over",
    ShardMemoryBounds(attempts = Vector(1, 2), handsOver = true, snapshots = true),
    states = 8900,
    attempts ++ Seq("adopts", "is written", "is reported", "with a snapshot")
  )
  private val Lives = Setup(
    "a checkpoint that is deleted and begun anew",
    ShardMemoryBounds(attempts = Vector(1, 1), lives = 2),
    states = 2570,
    attempts ++ Seq("life", "gives an image")
  )

  private val Setups = Seq(OneExecutor, Asking, HandOver, Snapshots, HandOverSnapshots, Lives)

  /**
   * @param in
   *   Setup in which the mutation is detected
   * @param violation
   *   Part of the message of the violated property
   * @param steps
   *   Relevant steps of the shortest trace, in order and including the last one
   */
  final private case class Fault(mutation: ShardMemoryMutation, in: Setup, violation: String, steps: Seq[String])

  private val Faults = Seq(
    // A speculative copy is still reading when its batch is over and the next one folds.
    Fault(
      FoldInPlace,
      OneExecutor,
      "attempt 0.0.1 reads its own batch: [0.0.0]",
      Seq("attempt 0.0.1 opens empty", "batch 1 begins", "attempt 0.1.0 opens 0.0.0, folds a change set")
    ),
    Fault(
      FoldInPlace,
      HandOver,
      "attempt 0.0.0 reads its own batch: [0.0.0]",
      Seq("attempt 0.0.0 opens empty", "reports, manifest 0.0", "executor 1 adopts 0.0.0, executor 0 gives an image")
    ),
    Fault(
      TrustCachedManifest,
      Lives,
      "attempt 1.1.0 reads 0.0.0, which is of another life",
      Seq("opens 0.0.0, loads it", "life 1 begins", "attempt 1.0.0 reports, manifest 0.0", "opens 1.0.0, loads it")
    ),
    Fault(
      TrustReadManifest,
      Lives,
      "attempt 0.1.0 reads 1.0.0, which is of another life",
      Seq("attempt 0.1.0 starts", "life 1 begins", "attempt 1.0.0 reports, manifest 0.0", "opens 0.0.0, loads it")
    ),
    Fault(
      OpenByBatch,
      Lives,
      "attempt 1.1.0 reads 0.0.0, which is of another life",
      Seq("opens 0.0.0, folds a change set", "life 1 begins", "attempt 1.1.0 opens 1.0.0, finds it")
    ),
    Fault(
      FoldByBatch,
      OneExecutor,
      "attempt 0.1.0 reads [0.0.0], not [0.0.1]",
      Seq("attempt 0.0.0 writes", "attempt 0.0.1 reports, manifest 0.0", "opens 0.0.1, folds a change set")
    ),
    Fault(
      FoldIntoAny,
      HandOver,
      "executor 0 has [0.0.0, 0.0.1] for 0.0.1",
      Seq(
        "executor 1 adopts 0.0.0, executor 0 gives an image",
        "attempt 0.0.1 writes",
        "attempt 0.0.1 reports, manifest 0.1",
        "executor 1 adopts 0.0.1, executor 0 gives an image"
      )
    ),
    Fault(
      GiveByName,
      Asking,
      "attempt 0.1.0 reads [], not [0.0.0]",
      Seq("attempt 0.0.0 writes", "opens 0.0.0, executor 0 gives an image")
    ),
    Fault(
      CatchUpByBatch,
      HandOver,
      "attempt 0.1.1 reads its own batch: [0.0.0, 0.1.0]",
      Seq("executor 1 adopts 0.1.0, executor 0 gives an image", "attempt 0.1.1 opens 0.0.0, catches up")
    ),
    Fault(
      SnapshotByBatch,
      HandOverSnapshots,
      "manifest 1.1 has [0.0.0, 0.1.",
      Seq("adopts 0.1.", "snapshot of 0.1.", "is reported", "manifest 1.1 with a snapshot")
    ),
    Fault(
      SnapshotOfBase,
      HandOverSnapshots,
      "manifest 1.1 has [0.0.0, 0.1.",
      Seq("adopts 0.1.", "snapshot of 0.0.0 is written", "is reported", "manifest 1.1 with a snapshot")
    )
  )
}
