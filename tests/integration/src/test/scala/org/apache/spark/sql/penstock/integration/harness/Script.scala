package org.apache.spark.sql.penstock.integration.harness

/** A step in the life of a query. */
sealed trait Step

object Step {

  /** New rows for both sources in one batch, and one more tick for the batch that a moved watermark triggers. */
  final case class Feed(left: Seq[Event], right: Seq[Event]) extends Step

  /** Time passes without rows. */
  case object Idle extends Step

  /** The query stops, and a new run continues from its checkpoint. */
  case object Restart extends Step

  /** Runs a function between two batches, for example to kill an executor. */
  final case class Disturb(run: () => Unit) extends Step

  /** As a restart, after the commit of the newest batch was lost, so that the new run repeats the batch. */
  case object Replay extends Step
}

/** The low-level actions of a script: triggers, and everything that happens between them. */
sealed trait Action

object Action {
  final case class Add(left: Seq[Event], right: Seq[Event]) extends Action
  final case class Act(run: () => Unit) extends Action
  case object LoseNewestCommit extends Action

  /** At each trigger the query runs at most one batch. */
  sealed trait Trigger extends Action

  /** A new run of the query starts, after the previous one was stopped. */
  case object Start extends Trigger

  /** Time passes. */
  case object Tick extends Trigger
}

object Script {
  import Step._

  /** The actions of a script, from the query's first start. */
  def actions(steps: Seq[Step]): IndexedSeq[Action] = Action.Start +: steps.toIndexedSeq.flatMap {
    case Feed(left, right) => Seq(Action.Add(left, right), Action.Tick, Action.Tick)
    case Idle => Seq.fill(3)(Action.Tick)
    case Disturb(run) => Seq(Action.Act(run))
    case Restart => Seq(Action.Start)
    case Replay => Seq(Action.LoseNewestCommit, Action.Start)
  }

  private val RowsPerInput = 100

  /** Three inputs, the last one empty, a restart, three more inputs, and time for the watermark to evict. */
  def standard(seed: Long, twoInputs: Boolean): Seq[Step] = {
    val generator = new EventGenerator(seed)
    def feed(batch: Int, rows: Int) =
      Feed(generator.input(batch, rows), if (twoInputs) generator.input(batch, rows / 2) else Nil)
    Seq(feed(0, RowsPerInput), feed(1, RowsPerInput), feed(2, 0), Restart) ++
      Seq(feed(3, RowsPerInput), feed(4, 5), feed(8, RowsPerInput), Idle)
  }

  /** The standard script with a rerun batch after the second and after the last but one input. */
  def withReplays(seed: Long, twoInputs: Boolean): Seq[Step] = {
    val steps = standard(seed, twoInputs)
    steps.take(2) ++ Seq(Replay) ++ steps.slice(2, 5) ++ Seq(Replay) ++ steps.drop(5)
  }

  /** The standard script with a batch that runs three times, each time in a new run. */
  def withReplaysInARow(seed: Long, twoInputs: Boolean): Seq[Step] = {
    val steps = standard(seed, twoInputs)
    steps.take(5) ++ Seq(Replay, Replay) ++ steps.drop(5)
  }
}
