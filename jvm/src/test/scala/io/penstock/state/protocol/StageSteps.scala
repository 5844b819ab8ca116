package io.penstock.state.protocol

import io.penstock.state.protocol.Driver.Running

/** Which stages of a batch run, and what Spark may still do with them. */
trait StageSteps extends CommitSteps {

  protected def isOver(d: Running, stage: Int): Boolean = d.stages(stage).isOver(bounds.runs(d.run).actions(stage))

  /** Stages that Spark has submitted. */
  protected def begun(d: Running): Range = {
    val at = d.stages.indices.indexWhere(!isOver(d, _))
    if (bounds.runs(d.run).parallel || at < 0) d.stages.indices else 0 to at
  }

  /**
   * Submitted stages whose action has not returned. Late events of an earlier action may as well come before its
   * return.
   */
  protected def active(d: Running): Seq[Int] =
    if (d.committed) Nil else if (bounds.runs(d.run).parallel) d.stages.indices else begun(d).takeRight(1)

  protected def mayRetry(d: Running): Boolean = {
    val run = bounds.runs(d.run)
    val needed = begun(d).map(stage => run.actions(stage).size * (d.stages(stage).attempt + 1)).sum
    !d.committed && d.stages.map(_.started.valuesIterator.sum).sum < needed + run.retries
  }

  protected def mayResubmit(d: Running): Boolean =
    !d.committed && d.stages.map(_.attempt).sum < bounds.runs(d.run).resubmits
}
