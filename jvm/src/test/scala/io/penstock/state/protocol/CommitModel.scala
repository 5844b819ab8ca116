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
final case class CommitModel(bounds: Bounds, mutation: Option[Mutation] = None, forgets: Boolean = true) {

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

  private type Step = (String, CommitState)

  private def is(m: Mutation): Boolean = mutation.contains(m)

  private def newStages(run: Int): Vector[Stage] = bounds.runs(run).actions.map(_ => Stage())

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
        // If no other driver takes steps, reading the logs one by one makes no difference.
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

  /**
   * Spark reads the offset log, then the commit log, and logs the offsets of a new batch. Then manifests are listed.
   */
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
      // A run that finds no manifest cannot continue: its batch is not retained any more.
      base.toSeq.map { case (generation, m) =>
        s"run $run starts from manifest ${batch - 1}.$generation" ->
          s.withDriver(Running(run, batch, offsets, m, generation, next, newStages(run)))
      }
    case _ => Nil
  }

  /** Spark creates an entry of its offset log, or finds an existing one. */
  private def logOffsets(s: CommitState, run: Int, batch: Int, next: Driver): Seq[Step] =
    if (is(OffsetsLast)) Seq(s"run $run plans batch $batch" -> s.withDriver(next))
    else if (s.offsets.size > batch) Seq(s"run $run is ended, batch $batch has offsets" -> s.ends(run))
    else Seq(s"run $run logs offsets of batch $batch" -> s.withDriver(next).copy(offsets = s.offsets :+ run))

  /** An operator removes the newest entries of Spark's logs while no run is alive. */
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

  /** Spark's job has ended. Spark creates an entry of its commit log, or finds an existing one. */
  private def commit(s: CommitState, d: Running): Seq[Step] =
    if (d.committed || !begun(d).forall(isOver(d, _)) || begun(d).size < d.stages.size) Nil
    else if (s.committed >= d.batch || is(OffsetsLast) && s.offsets.size > d.batch)
      Seq(s"run ${d.run} is ended, batch ${d.batch} is committed" -> s.ends(d.run))
    else {
      val offsets = if (is(OffsetsLast)) s.offsets :+ d.run else s.offsets
      val next = d.copy(committed = true, stages = d.stages.map(_.copy(started = Map.empty)), alive = Set.empty)
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
          stages = newStages(d.run),
          // Waiting attempts will be refused, which changes nothing.
          waiting = if (is(AcceptLate)) d.waiting else Set.empty,
          snapshot = d.snapshot,
          writing = d.writing,
          durable = d.durable,
          garbage = d.garbage
        )
        logOffsets(s, d.run, d.batch + 1, next)
      }

  // ---- attempts

  private def isOver(d: Running, stage: Int): Boolean = d.stages(stage).isOver(bounds.runs(d.run).actions(stage))

  /** Stages that Spark has submitted. */
  private def begun(d: Running): Range = {
    val at = d.stages.indices.indexWhere(!isOver(d, _))
    if (bounds.runs(d.run).parallel || at < 0) d.stages.indices else 0 to at
  }

  /**
   * Submitted stages whose action has not returned. Late events of an earlier action may as well come before its
   * return.
   */
  private def active(d: Running): Seq[Int] =
    if (d.committed) Nil else if (bounds.runs(d.run).parallel) d.stages.indices else begun(d).takeRight(1)

  private def mayRetry(d: Running): Boolean = {
    val run = bounds.runs(d.run)
    val needed = begun(d).map(stage => run.actions(stage).size * (d.stages(stage).attempt + 1)).sum
    !d.committed && d.stages.map(_.started.valuesIterator.sum).sum < needed + run.retries
  }

  private def mayResubmit(d: Running): Boolean =
    !d.committed && d.stages.map(_.attempt).sum < bounds.runs(d.run).resubmits

  /** A fetch fails. Nobody waits for the remaining attempts of the older stage attempt. */
  private def submitAgain(s: CommitState, d: Running): Seq[Step] =
    if (!mayResubmit(d)) Nil
    else
      active(d).filter(d.stages(_).started.nonEmpty).map { stage =>
        val next = d.copy(
          stages = d.stages.updated(stage, d.stages(stage).submittedAgain),
          alive = d.alive.filter(_.stage != stage)
        )
        s"stage $stage of batch ${d.batch} in run ${d.run} is submitted again" -> s.withDriver(next)
      }

  /** An attempt starts and writes. Before it writes, nothing depends on it. */
  private def write(s: CommitState, d: Running): Seq[Step] =
    if (!mayRetry(d)) Nil
    else
      for {
        stage <- active(d)
        task <- bounds.runs(d.run).actions(stage).toSeq.sorted
      } yield {
        val current = d.stages(stage)
        val number = current.started.getOrElse(task, 0)
        val attempt = Attempt(d.run, d.batch, task, number, d.offsets, stage, current.attempt)
        val next = d.copy(
          stages = d.stages.updated(stage, current.copy(started = current.started.updated(task, number + 1))),
          waiting = d.waiting + attempt
        )
        s"$attempt writes" -> s.withDriver(next).copy(files = s.files + attempt)
      }

  /**
   * An attempt reports what it has written and receives an answer, or it is lost and its task has to be run again.
   *
   * Waiting attempts of one task differ only in their names, so it suffices that the first of them reports. If no other
   * attempt can come, a lost one adds nothing: the job does not end, as if the driver had died.
   */
  private def report(s: CommitState, d: Running): Seq[Step] =
    d.waiting.groupBy(a => a.copy(number = 0)).values.map(_.minBy(_.number)).toSeq.flatMap { a =>
      val rest = d.copy(waiting = d.waiting - a)
      AttemptOrder.verdict(d, a, bounds.runs(d.run).tasks(a.task).head, mutation) match {
        case AttemptOrder.Counts => note(s, rest, a)
        case AttemptOrder.Passed => heard(s, rest, a, s"$a reports, and changes nothing")
        case AttemptOrder.Refused => Seq(s"$a reports, and is refused" -> s.withDriver(rest))
        case AttemptOrder.Waits => Nil
      }
    }

  /** An attempt counts. If all shards of its round are reported, it waits for a manifest. */
  private def note(s: CommitState, d: Running, a: Attempt): Seq[Step] = {
    val run = bounds.runs(d.run)
    val shards = run.tasks(a.task).map(_ -> a)
    val further = isFurther(d, a)
    val noted =
      if (!further) d.copy(reported = d.reported ++ shards, messages = if (is(CountTasksOnce)) d.messages + 1 else 0)
      else if (is(IgnoreFurtherRound)) d
      else d.copy(further = d.further ++ shards)
    val complete =
      if (further) noted.further.size == bounds.shards
      else if (is(CountTasksOnce)) noted.messages >= run.tasks.size
      else noted.reported.size == bounds.shards
    val reported = if (further && complete) noted.copy(reported = noted.further, further = Map.empty) else noted
    if (!complete || is(AnswerFirst)) heard(s, reported, a, s"$a reports")
    else if (run.slow) {
      val next = beginWrite(alive(reported, a).copy(unanswered = reported.unanswered + a))
      Seq(s"$a reports, and waits for a manifest" -> s.withDriver(next))
    } else
      create(s, reported, manifest(reported)) match {
        case None =>
          Seq(s"$a reports, run ${d.run} is ended, it finds manifest ${d.batch}.${d.generation}" -> s.ends(d.run))
        case Some((next, now)) => heard(next, now, a, s"$a reports, manifest ${d.batch}.${d.generation}")
      }
  }

  /** Whether the attempt is of a stage that has reported nothing in the complete round. */
  private def isFurther(d: Running, a: Attempt): Boolean =
    !is(WriteIncompleteRound) && d.reported.size == bounds.shards &&
      !d.reported.valuesIterator.exists(_.stage == a.stage)

  /** An attempt receives its answer and thereby ends, unless the bounds make it slow. */
  private def heard(s: CommitState, d: Running, a: Attempt, name: String): Seq[Step] =
    if (d.committed || a.batch != d.batch) Seq(name -> s.withDriver(d))
    else if (bounds.runs(d.run).slow) Seq(name -> s.withDriver(alive(d, a)))
    else {
      val lost = Option.when(mayRetry(d) || d.waiting.nonEmpty)(s"$name, and is lost" -> s.withDriver(d))
      lost.toSeq :+ name -> s.withDriver(succeeded(d, a))
    }

  /** Marks an attempt as not ended. The end of an attempt of an older stage attempt is irrelevant. */
  private def alive(d: Running, a: Attempt): Running =
    if (d.committed || a.stageAttempt != d.stages(a.stage).attempt) d else d.copy(alive = d.alive + a)

  private def succeeded(d: Running, a: Attempt): Running =
    d.copy(stages = d.stages.updated(a.stage, d.stages(a.stage).succeeds(a)))

  /** Spark learns how an attempt has ended. After a task has succeeded, its other attempts are irrelevant. */
  private def end(s: CommitState, d: Running): Seq[Step] = d.alive.toSeq.flatMap { a =>
    val answered = !d.unanswered(a) && !d.answers(a) || is(AnswerFurtherFirst) && d.written.isDefined
    val others = d.alive.filter(b => (b.stage, b.task) != ((a.stage, a.task)))
    val success = Option.when(answered)(s"$a succeeds" -> s.withDriver(succeeded(d, a).copy(alive = others)))
    val replaced = mayRetry(d) || mayResubmit(d) || d.waiting.nonEmpty || d.alive.size - others.size > 1
    val lost = Option.when(replaced)(s"$a is lost" -> s.withDriver(d.copy(alive = d.alive - a)))
    success ++ lost
  }

  // ---- manifests

  /** Writes the manifest that [[Mutation.AnswerFirst]] has deferred. */
  private def writeLate(s: CommitState, d: Running): Seq[Step] =
    if (!is(AnswerFirst) || d.reported.size < bounds.shards || d.written.isDefined) Nil
    else create(s, d, manifest(d)).map(s"manifest ${d.batch}.${d.generation}" -> _._1).toSeq

  /**
   * One manifest is written at a time, with everything reported so far. Attempts that report meanwhile share the next
   * one.
   */
  private def beginWrite(d: Running): Running =
    if (d.unwritten.isDefined || d.unanswered.isEmpty) d
    else d.copy(unwritten = Some(manifest(d)), answers = d.unanswered, unanswered = Set.empty)

  private def endWrite(s: CommitState, d: Running): Seq[Step] = d.unwritten.toSeq.map { m =>
    create(s, d, m) match {
      case None => s"run ${d.run} is ended, it finds manifest ${d.batch}.${d.generation}" -> s.ends(d.run)
      case Some((next, now)) =>
        val unanswered = if (is(AnswerUnnamed)) Set.empty[Attempt] else now.unanswered
        val after = beginWrite(now.copy(unwritten = None, answers = Set.empty, unanswered = unanswered))
        s"manifest ${d.batch}.${d.generation} is durable" -> next.withDriver(after)
    }
  }

  private def manifest(d: Running): Manifest = {
    val shards = d.base.shards.zipWithIndex.map { case (before, shard) =>
      val from = d.snapshot.filter(isRetained(d.batch, _)).fold(before)(before.withSnapshot)
      from.copy(deltas = from.deltas ++ d.reported.get(shard))
    }
    Manifest(d.baseGeneration, shards)
  }

  /** Creates the next generation, unless another run has created it already. */
  private def create(s: CommitState, d: Running, m: Manifest): Option[(CommitState, Running)] = {
    val id = (d.batch, d.generation)
    Option.when(!s.manifests.contains(id) || is(ForgetGenerations)) {
      val now = d.copy(next = d.next.updated(d.batch, d.generation + 1), written = Some(m), durable = Some(d.batch))
      (s.withDriver(now).copy(manifests = s.manifests.updated(id, m)), now)
    }
  }

  // ---- snapshots

  /**
   * An executor writes a shard in its state before the batch and reports the file at any later time. A start now and a
   * write later need no step of their own: they are equivalent to no cleaner looking in between. Bounds with snapshots
   * have one shard.
   */
  private def snapshot(s: CommitState, d: Running): Seq[Step] = d.writing match {
    case Some(file) => Seq(s"$file is reported" -> s.withDriver(d.copy(snapshot = d.writing, writing = None)))
    case None if !bounds.snapshots || d.batch == 0 || d.snapshot.isDefined => Nil
    case None =>
      val file = Snapshot(d.run, d.base.shards.head.history)
      Seq(s"$file is written" -> s.withDriver(d.copy(writing = Some(file))).copy(files = s.files + file))
  }

  /** A file of an older version may be deleted, now or soon, as long as no manifest names it. */
  private def isRetained(batch: Int, file: Snapshot): Boolean = is(AnySnapshot) || file.batch >= oldestRetained(batch)

  // ---- the cleaner

  /**
   * Retains all generations of the newest `retain` + 2 batches. A file or manifest of an older batch is deleted if none
   * of these names it. No clock is involved.
   *
   *   - One more batch than the query can be rewound to, because the newest batch may not be committed.
   *   - One more again, because a run that the commit log is about to end may still write a generation of the batch
   *     before the newest, and that generation builds on the batch before.
   *   - All generations, because another run may write a newer generation while a run builds on an older one.
   *
   * A cleaner that is stopped while it deletes does less harm than one that completes, so deletion is one step.
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

  /** The oldest batch that is retained once the given batch is durable. */
  private def oldestRetained(newest: Int): Int = {
    val more = if (is(RetainTooFew)) 0 else if (is(RetainForOneRun)) 1 else 2
    newest - bounds.retain - more + 1
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

  private def files(manifests: Iterable[Manifest]): Set[StateFile] = manifests.iterator.flatMap(_.files).toSet

  // ---- omission of unread parts

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
