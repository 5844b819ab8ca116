package io.penstock.state.protocol

import io.penstock.state.protocol.Driver._
import io.penstock.state.protocol.Mutation._

/**
 * The commit of docs/PROTOCOL.md, section 7, as a machine of small steps: attempts of tasks, drivers that run batches,
 * Spark's offset log and commit log, and the cleaner. A step creates one file, handles one message, or reads one thing.
 * What a step does that finds a file there already is the point of much of this: the run ends.
 *
 * Every task changes each of its shards in every batch.
 *
 * A driver has no step in which it dies. One that takes no more steps is as good as dead, and what it remembers is
 * forgotten when another run takes its place ([[Bounds.alive]]).
 *
 * @param forgets
 *   whether what nobody looks at any more is left out of states, so that there are fewer of them
 */
final case class CommitModel(bounds: Bounds, mutation: Option[Mutation] = None, forgets: Boolean = true) {

  def search(limit: Int): Search[CommitState] =
    Search.exhaustive(CommitState(), limit)(steps)(
      new CommitProperties(bounds, is(HistoryByNewestGeneration)).violation
    )

  /** Every step that can be taken, with a name for the trace. */
  def steps(s: CommitState): Seq[Step] = {
    val all = start(s) ++ rewind(s) ++ s.drivers.flatMap {
      case d: Running =>
        write(s, d) ++ tell(s, d) ++ writeLate(s, d) ++ commit(s, d) ++ open(s, d) ++ snapshot(s, d) ++ clean(s, d)
      case d => begin(s, d)
    }
    if (forgets) all.map { case (name, next) => name -> withoutUnread(next) } else all
  }

  private type Step = (String, CommitState)

  private def is(m: Mutation): Boolean = mutation.contains(m)

  // ---- a run starts

  private def start(s: CommitState): Seq[Step] =
    if (s.runs == bounds.runs.size) Nil
    else {
      val places =
        if (s.drivers.size < bounds.alive) Seq("" -> s.drivers)
        else s.drivers.map(d => s", run ${d.run} is dead" -> s.drivers.filter(_ ne d))
      places.flatMap { case (dead, others) =>
        val started = HasReadOffsets(s.runs, s.offsets.size - 1)
        val next = s.copy(drivers = others :+ started, runs = s.runs + 1)
        // Where nobody else takes a step it makes no difference that things are read one by one.
        val at = if (bounds.alive > 1) Seq(next) else untilRunning(next, started)
        at.map(s"run ${s.runs} starts$dead" -> _)
      }
    }

  private def untilRunning(s: CommitState, d: Driver): Seq[CommitState] = begin(s, d).flatMap { case (_, next) =>
    next.drivers.find(_.run == d.run) match {
      case Some(_: Running) | None => Seq(next)
      case Some(now) => untilRunning(next, now)
    }
  }

  /** Spark reads the offset log, then the commit log, and logs offsets of a new batch; then manifests are listed. */
  private def begin(s: CommitState, d: Driver): Seq[Step] = d match {
    case HasReadOffsets(run, newest) =>
      val again = newest >= 0 && newest != s.committed
      val batch = if (again) newest else newest + 1
      if (batch == bounds.batches) Nil
      else {
        val next = if (again) HasOffsets(run, batch) else HasNewBatch(run, batch)
        Seq(s"run $run reads the commit log and is at batch $batch" -> s.withDriver(next))
      }
    case HasNewBatch(run, batch) => logOffsets(s, run, batch, HasOffsets(run, batch))
    case HasOffsets(run, batch) =>
      val base =
        if (batch == 0) Some(-1 -> Manifest.empty(bounds.shards))
        else if (is(StartFromFirstGeneration)) s.manifests.get((batch - 1, 0)).map(0 -> _)
        else s.newest(batch - 1)
      val next = Vector.tabulate(bounds.batches) { b =>
        if (is(ForgetGenerations) || is(ForgetLaterGenerations) && b > batch) 0 else s.generations(b)
      }
      val offsets = if (is(OffsetsLast)) run else s.offsets(batch)
      // A run that finds no manifest can do nothing: it was at a batch that is not retained any more.
      base.toSeq.map { case (generation, m) =>
        s"run $run starts from manifest ${batch - 1}.$generation" ->
          s.withDriver(Running(run, batch, offsets, m, generation, next))
      }
    case _ => Nil
  }

  /** Spark creates an entry of its offset log, or finds one. */
  private def logOffsets(s: CommitState, run: Int, batch: Int, next: Driver): Seq[Step] =
    if (is(OffsetsLast)) Seq(s"run $run plans batch $batch" -> s.withDriver(next))
    else if (s.offsets.size > batch) Seq(s"run $run is ended, batch $batch has offsets" -> s.ends(run))
    else Seq(s"run $run logs offsets of batch $batch" -> s.withDriver(next).copy(offsets = s.offsets :+ run))

  /** Somebody removes the newest entries of Spark's logs, and sees to it that no run is alive. */
  private def rewind(s: CommitState): Seq[Step] =
    if (!bounds.rewinds || s.rewound.isDefined || s.runs == bounds.runs.size) Nil
    else {
      val oldest = Bounds.oldestRetained(bounds, s)
      (math.max(0, oldest) until s.committed).map { to =>
        s"the query is rewound to batch $to" ->
          s.copy(committed = to, offsets = s.offsets.take(to + 1), drivers = Vector.empty, rewound = Some(oldest))
      }
    }

  // ---- a batch ends, and the next one begins

  /** Spark's job has ended: Spark creates an entry of its commit log, or finds one. */
  private def commit(s: CommitState, d: Running): Seq[Step] =
    if (d.committed || !bounds.runs(d.run).tasks.indices.forall(d.done)) Nil
    else if (s.committed >= d.batch || is(OffsetsLast) && s.offsets.size > d.batch)
      Seq(s"run ${d.run} is ended, batch ${d.batch} is committed" -> s.ends(d.run))
    else {
      val offsets = if (is(OffsetsLast)) s.offsets :+ d.run else s.offsets
      val next = d.copy(committed = true, attempts = Map.empty, done = Set.empty)
      Seq(s"run ${d.run} commits batch ${d.batch}" -> s.withDriver(next).copy(committed = d.batch, offsets = offsets))
    }

  private def open(s: CommitState, d: Running): Seq[Step] =
    if (!d.committed || d.batch + 1 == bounds.batches) Nil
    else
      d.written.toSeq.flatMap { manifest =>
        val next = Running(
          d.run,
          d.batch + 1,
          offsets = d.run,
          base = manifest,
          baseGeneration = d.generation - 1,
          next = d.next,
          // What waits will be refused, and that changes nothing.
          waiting = if (is(AcceptLate)) d.waiting else Set.empty,
          snapshot = d.snapshot,
          writing = d.writing,
          durable = d.durable,
          garbage = d.garbage
        )
        logOffsets(s, d.run, d.batch + 1, next)
      }

  // ---- attempts

  private def mayRetry(d: Running): Boolean = {
    val run = bounds.runs(d.run)
    !d.committed && d.attempts.valuesIterator.sum < run.tasks.size + run.retries
  }

  /** Before it writes, an attempt is nothing to anyone. */
  private def write(s: CommitState, d: Running): Seq[Step] =
    if (!mayRetry(d)) Nil
    else
      bounds.runs(d.run).tasks.indices.map { task =>
        val number = d.attempts.getOrElse(task, 0)
        val attempt = Attempt(d.run, d.batch, task, number, d.offsets)
        val next = d.copy(attempts = d.attempts.updated(task, number + 1), waiting = d.waiting + attempt)
        s"$attempt writes" -> s.withDriver(next).copy(files = s.files + attempt)
      }

  /**
   * An attempt tells what it has written, and hears the answer; or it is lost before, and its task has yet to succeed.
   *
   * Attempts of one task that wait differ in their names only, so it is enough that the first of them tells. And where
   * no other attempt can come, one that is lost adds nothing: the job does not end, as if the driver died.
   */
  private def tell(s: CommitState, d: Running): Seq[Step] =
    d.waiting.groupBy(a => (a.batch, a.task)).values.map(_.minBy(_.number)).toSeq.flatMap { a =>
      val run = bounds.runs(d.run)
      val told = d.copy(
        told = d.told ++ run.tasks(a.task).map(_ -> a),
        waiting = d.waiting - a,
        messages = if (is(CountTasksOnce)) d.messages + 1 else 0
      )
      val complete = if (is(CountTasksOnce)) told.messages >= run.tasks.size else told.told.size == bounds.shards
      if (!complete || is(AnswerFirst)) heard(s.withDriver(told), told, a, s"$a tells")
      else
        writeManifest(s, told) match {
          case None =>
            Seq(s"$a tells, run ${d.run} is ended, it finds manifest ${d.batch}.${d.generation}" -> s.ends(d.run))
          case Some((next, now)) => heard(next, now, a, s"$a tells, manifest ${d.batch}.${d.generation}")
        }
    }

  private def heard(s: CommitState, d: Running, a: Attempt, name: String): Seq[Step] =
    if (d.committed || a.batch != d.batch) Seq(name -> s)
    else {
      val lost = Option.when(mayRetry(d) || d.waiting.nonEmpty)(s"$name, and is lost" -> s)
      lost.toSeq :+ name -> s.withDriver(d.copy(done = d.done + a.task))
    }

  /** What [[Mutation.AnswerFirst]] has left to do. */
  private def writeLate(s: CommitState, d: Running): Seq[Step] =
    if (!is(AnswerFirst) || d.told.size < bounds.shards || d.written.isDefined) Nil
    else writeManifest(s, d).map(s"manifest ${d.batch}.${d.generation}" -> _._1).toSeq

  /** The next generation, unless another run has created it. */
  private def writeManifest(s: CommitState, d: Running): Option[(CommitState, Running)] = {
    val id = (d.batch, d.generation)
    Option.when(!s.manifests.contains(id) || is(ForgetGenerations)) {
      val shards = d.base.shards.zipWithIndex.map { case (before, shard) =>
        val from = d.snapshot.filter(isRetained(d.batch, _)).fold(before)(before.withSnapshot)
        from.copy(deltas = from.deltas ++ d.told.get(shard))
      }
      val m = Manifest(d.baseGeneration, shards)
      val now = d.copy(next = d.next.updated(d.batch, d.generation + 1), written = Some(m), durable = Some(d.batch))
      (s.withDriver(now).copy(manifests = s.manifests.updated(id, m)), now)
    }
  }

  // ---- snapshots

  /**
   * An executor writes a shard as it is before the batch, and tells at any later time. It may as well begin now and
   * write later: that is as if no cleaner looked in the meantime. Bounds with snapshots have one shard.
   */
  private def snapshot(s: CommitState, d: Running): Seq[Step] = d.writing match {
    case Some(file) => Seq(s"$file is told" -> s.withDriver(d.copy(snapshot = d.writing, writing = None)))
    case None if !bounds.snapshots || d.batch == 0 || d.snapshot.isDefined => Nil
    case None =>
      val file = Snapshot(d.run, d.base.shards.head.history)
      Seq(s"$file is written" -> s.withDriver(d.copy(writing = Some(file))).copy(files = s.files + file))
  }

  /** A file of an older version may be gone, or go soon: no cleaner spares it as long as no manifest names it. */
  private def isRetained(batch: Int, file: Snapshot): Boolean = is(AnySnapshot) || file.batch >= oldestRetained(batch)

  // ---- the cleaner

  /**
   * Retained are all generations of the newest `retain` + 2 batches. What is of an older batch is deleted if none of
   * these names it; no clock decides.
   *
   *   - One batch more than the query can be rewound to: the newest one may not be committed.
   *   - One more again: a run that the commit log is about to end may still write a generation of the batch before the
   *     newest, and that builds on the one before.
   *   - All generations: while a run builds on one, another run may write a newer one.
   *
   * To be stopped while it deletes does less harm than to delete all, so that is one step.
   */
  private def clean(s: CommitState, d: Running): Seq[Step] = {
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

  /** The oldest batch that is retained once a batch is durable. */
  private def oldestRetained(newest: Int): Int = {
    val more = if (is(RetainTooFew)) 0 else if (is(RetainForOneRun)) 1 else 2
    newest - bounds.retain - more + 1
  }

  private def look(s: CommitState, newest: Int): Garbage = {
    val retained = s.manifests.filter { case ((b, _), _) => b >= oldestRetained(newest) }
    val named = files(retained.values)
    val kept = if (is(CleanSuperseded)) retained.filter { case ((b, g), _) => g + 1 == s.generations(b) } else retained
    val needed = if (is(CleanByAge)) Set.empty[StateFile] else files(kept.values)
    // What cannot be an hour old: the newest batch and the one before.
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

  private def files(manifests: Iterable[Manifest]): Set[StateFile] = manifests.iterator.flatMap(_.files).toSet

  // ---- what is left out

  /**
   * Without what no later step and no property looks at: the content of a manifest that is not the newest of its batch,
   * nor what a driver builds on, nor history of either; and files that nobody can name any more.
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
      case d: Running => d.base.files ++ d.told.values ++ d.waiting ++ d.snapshot ++ d.writing
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
