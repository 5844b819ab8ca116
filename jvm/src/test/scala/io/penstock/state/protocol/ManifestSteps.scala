package io.penstock.state.protocol

import io.penstock.state.protocol.Driver.Running
import io.penstock.state.protocol.Mutation._

/** A run writes manifests, and names in them the snapshots that executors have written. */
trait ManifestSteps extends CommitSteps {

  /** Writes the manifest that [[Mutation.AnswerFirst]] has deferred. */
  protected def writeLate(s: CommitState, d: Running): Seq[Step] =
    if (!is(AnswerFirst) || d.reported.size < bounds.shards || d.written.isDefined) Nil
    else create(s, d, manifest(d)).map(s"manifest ${d.batch}.${d.generation}" -> _._1).toSeq

  /**
   * One manifest is written at a time, with everything reported so far. Attempts that report meanwhile share the next
   * one.
   */
  protected def beginWrite(d: Running): Running =
    if (d.unwritten.isDefined || d.unanswered.isEmpty) d
    else d.copy(unwritten = Some(manifest(d)), answers = d.unanswered, unanswered = Set.empty)

  protected def endWrite(s: CommitState, d: Running): Seq[Step] = d.unwritten.toSeq.map { m =>
    create(s, d, m) match {
      case None => s"run ${d.run} is ended, it finds manifest ${d.batch}.${d.generation}" -> s.ends(d.run)
      case Some((next, now)) =>
        val unanswered = if (is(AnswerUnnamed)) Set.empty[Attempt] else now.unanswered
        val after = beginWrite(now.copy(unwritten = None, answers = Set.empty, unanswered = unanswered))
        s"manifest ${d.batch}.${d.generation} is durable" -> next.withDriver(after)
    }
  }

  protected def manifest(d: Running): Manifest = {
    val shards = d.base.shards.zipWithIndex.map { case (before, shard) =>
      val from = d.snapshot.filter(isRetained(d.batch, _)).fold(before)(before.withSnapshot)
      from.copy(deltas = from.deltas ++ d.reported.get(shard))
    }
    Manifest(d.baseGeneration, shards)
  }

  /** Creates the next generation, unless another run has created it already. */
  protected def create(s: CommitState, d: Running, m: Manifest): Option[(CommitState, Running)] = {
    val id = (d.batch, d.generation)
    Option.when(!s.manifests.contains(id) || is(ForgetGenerations)) {
      val now = d.copy(next = d.next.updated(d.batch, d.generation + 1), written = Some(m), durable = Some(d.batch))
      (s.withDriver(now).copy(manifests = s.manifests.updated(id, m)), now)
    }
  }

  /**
   * An executor writes a shard in its state before the batch and reports the file at any later time. A start now and a
   * write later need no step of their own: they are equivalent to no cleaner looking in between. Bounds with snapshots
   * have one shard.
   */
  protected def snapshot(s: CommitState, d: Running): Seq[Step] = d.writing match {
    case Some(file) => Seq(s"$file is reported" -> s.withDriver(d.copy(snapshot = d.writing, writing = None)))
    case None if !bounds.snapshots || d.batch == 0 || d.snapshot.isDefined => Nil
    case None =>
      val file = Snapshot(d.run, d.base.shards.head.history)
      Seq(s"$file is written" -> s.withDriver(d.copy(writing = Some(file))).copy(files = s.files + file))
  }

  /** A file of an older version may be deleted, now or soon, as long as no manifest names it. */
  private def isRetained(batch: Int, file: Snapshot): Boolean = is(AnySnapshot) || file.batch >= oldestRetained(batch)
}
