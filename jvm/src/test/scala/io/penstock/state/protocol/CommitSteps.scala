package io.penstock.state.protocol

import io.penstock.state.protocol.Mutation._

/** What the steps of [[CommitModel]] have in common. */
trait CommitSteps {

  /** A step's name for the trace, and the state after it. */
  type Step = (String, CommitState)

  def bounds: Bounds

  def mutation: Option[Mutation]

  protected def is(m: Mutation): Boolean = mutation.contains(m)

  protected def newStages(run: Int): Vector[Stage] = bounds.runs(run).actions.map(_ => Stage())

  /**
   * The oldest batch that is retained once the given batch is durable. A cleaner retains all generations of the newest
   * `retain` + 2 batches. A file or manifest of an older batch is deleted if none of these names it. No clock is
   * involved.
   *
   *   - One more batch than the query can be rewound to, because the newest batch may not be committed.
   *   - One more again, because a run that the commit log is about to end may still write a generation of the batch
   *     before the newest, and that generation builds on the batch before.
   *   - All generations, because another run may write a newer generation while a run builds on an older one.
   */
  protected def oldestRetained(newest: Int): Int = {
    val more = if (is(RetainTooFew)) 0 else if (is(RetainForOneRun)) 1 else 2
    newest - bounds.retain - more + 1
  }

  protected def files(manifests: Iterable[Manifest]): Set[StateFile] = manifests.iterator.flatMap(_.files).toSet
}
