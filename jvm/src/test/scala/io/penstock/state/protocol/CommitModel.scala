package io.penstock.state.protocol

import io.penstock.state.protocol.Driver._
import io.penstock.state.protocol.Mutation._

/**
 * Model of the commit protocol in docs/PROTOCOL.md, section 7, as a state machine with small steps: task attempts,
 * drivers that run batches, Spark's offset log and commit log, and the cleaner. A step creates one file, handles one
 * message, or reads one thing. A step that finds its file already created ends the run; many rules exist because of
 * that.
 *
 * Every task changes each of its shards in every batch.
 *
 * A driver does not die in a step. A driver that takes no more steps is equivalent to a dead one, and its memory is
 * dropped when another run takes its place ([[Bounds.alive]]).
 *
 * @param forgets
 *   Whether states omit what no later step or property reads, which reduces their number
 */
final case class CommitModel(bounds: Bounds, mutation: Option[Mutation] = None, forgets: Boolean = true)
    extends AttemptSteps
    with RunSteps
    with CleanerSteps {

  def search(limit: Int): Search[CommitState] =
    Search.exhaustive(CommitState(), limit)(steps)(
      new CommitProperties(bounds, is(HistoryByNewestGeneration)).violation
    )

  /** All possible steps, each with its name for the trace. */
  def steps(s: CommitState): Seq[Step] = {
    val all = start(s) ++ rewind(s) ++ s.drivers.flatMap {
      case d: Running =>
        submitAgain(s, d) ++ write(s, d) ++ report(s, d) ++ end(s, d) ++ writeLate(s, d) ++ endWrite(s, d) ++
          commit(s, d) ++ open(s, d) ++ snapshot(s, d) ++ clean(s, d)
      case d => begin(s, d)
    }
    if (forgets) all.map { case (name, next) => name -> withoutUnread(next) } else all
  }

  /**
   * Removes what no later step and no property reads: the content of manifests that are neither the newest of their
   * batch, nor the base of a driver, nor in the history of either; and files that nothing can name any more.
   */
  def withoutUnread(s: CommitState): CommitState = {
    val newest = s.manifests.keySet.map { case (b, _) => (b, s.generations(b) - 1) }
    val ofDrivers = s.drivers.flatMap {
      case d: Running => Seq((d.batch - 1, d.baseGeneration), (d.batch, d.generation - 1))
      case _ => Nil
    }
    def history(id: Manifest.Id): Iterator[Manifest.Id] =
      Iterator.unfold(id)(i => s.manifests.get(i).map(m => (i, (i._1 - 1, m.base))))
    val read = if (is(StartFromFirstGeneration)) s.manifests.keySet else (newest ++ ofDrivers).flatMap(history)
    val manifests = s.manifests.map { case (id, m) => id -> (if (read(id)) m else Manifest.LeftOut) }
    val known = files(manifests.values) ++ s.drivers.flatMap {
      case d: Running =>
        d.base.files ++ d.reported.values ++ d.further.values ++ d.unwritten.toSeq.flatMap(_.files) ++ d.waiting ++
          d.snapshot ++ d.writing
      case _ => Nil
    }
    val drivers = s.drivers.map {
      case d: Running => d.copy(garbage = d.garbage.map(g => g.copy(g.oldest, g.needed & known, g.lateFiles & known)))
      case d => d
    }
    val ended = if (bounds.alive == 1) s.ended else Set.empty[Int]
    s.copy(s.files & known, manifests, drivers = drivers, ended = ended)
  }
}
