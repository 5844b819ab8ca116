package io.penstock.state.protocol

import io.penstock.state.protocol.Driver.Running
import io.penstock.state.protocol.Mutation._

/** A run's cleaner reads manifests, and deletes what is not retained: see [[oldestRetained]]. */
trait CleanerSteps extends CommitSteps {

  /** A cleaner that is stopped while it deletes does less harm than one that completes, so deletion is one step. */
  protected def clean(s: CommitState, d: Running): Seq[Step] = {
    val name = s"the cleaner of run ${d.run}"
    d.garbage match {
      case Some(found) => Seq(s"$name deletes" -> delete(s.withDriver(d.copy(garbage = None)), found))
      case None =>
        d.durable.toSeq.flatMap { batch =>
          val found = look(s, batch)
          if (bounds.slowCleaner) Seq(s"$name reads manifests" -> s.withDriver(d.copy(garbage = Some(found))))
          else Seq(delete(s, found)).filter(_ != s).map(s"$name deletes" -> _)
        }
    }
  }

  private def look(s: CommitState, newest: Int): Garbage = {
    val retained = s.manifests.filter { case ((b, _), _) => b >= oldestRetained(newest) }
    val named = files(retained.values)
    val kept = if (is(CleanSuperseded)) retained.filter { case ((b, g), _) => g + 1 == s.generations(b) } else retained
    val needed = if (is(CleanByAge)) Set.empty[StateFile] else files(kept.values)
    // Files of the newest batch and of the one before cannot be an hour old.
    def young(batch: Int) = batch >= newest - 1
    val late = if (is(CleanSuperseded)) named else if (is(CleanUnnamed)) s.files.diff(named) else Set.empty[StateFile]
    Garbage(
      retained.keysIterator.map(_._1).min,
      needed,
      late.filter(f => !young(f.batch) && !needed(f)),
      retained.keySet.filter(id => !young(id._1) && !kept.contains(id))
    )
  }

  private def delete(s: CommitState, found: Garbage): CommitState =
    s.copy(files = s.files.filterNot(found.has), manifests = s.manifests.filterNot { case (id, _) => found.has(id) })
}
