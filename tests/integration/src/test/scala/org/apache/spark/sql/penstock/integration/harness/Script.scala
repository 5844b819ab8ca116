package org.apache.spark.sql.penstock.integration.harness

/** What happens to a query while it runs, step by step. */
sealed trait Step

object Step {

  /** New rows for both sources, in one batch; then one more tick for the batch that a moved watermark asks for. */
  final case class Feed(left: Seq[Event], right: Seq[Event]) extends Step

  /** Time passes and no rows come. */
  case object Idle extends Step

  /** The query stops and a new run goes on from its checkpoint. */
  case object Restart extends Step

  /** Something happens to the application between two batches. */
  final case class Disturb(what: () => Unit) extends Step

  /** As a restart, after the commit of the newest batch was lost: the new run has to do the batch again. */
  case object Replay extends Step
}

/** What a script comes down to: everything that happens between two triggers, and the triggers. */
sealed trait Action

object Action {
  final case class Add(left: Seq[Event], right: Seq[Event]) extends Action
  final case class Act(what: () => Unit) extends Action
  case object LoseNewestCommit extends Action

  /** At either the query runs at most one batch. */
  sealed trait Trigger extends Action

  /** A new run of the query starts; the one before, if there is one, is stopped first. */
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
    case Disturb(what) => Seq(Action.Act(what))
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

  /** The standard script with a batch done again after the second and after the last input but one. */
  def withReplays(seed: Long, twoInputs: Boolean): Seq[Step] = {
    val steps = standard(seed, twoInputs)
    steps.take(2) ++ Seq(Replay) ++ steps.slice(2, 5) ++ Seq(Replay) ++ steps.drop(5)
  }

  /** The standard script with a batch that is done three times, each time in a new run. */
  def withReplaysInARow(seed: Long, twoInputs: Boolean): Seq[Step] = {
    val steps = standard(seed, twoInputs)
    steps.take(5) ++ Seq(Replay, Replay) ++ steps.drop(5)
  }
}
