package io.penstock.state.protocol

import io.penstock.state.protocol.Driver._
import io.penstock.state.protocol.Mutation._

/** Runs start, and go from one batch to the next. Spark's logs are read and written, and an operator rewinds them. */
trait RunSteps extends StageSteps {

  protected def start(s: CommitState): Seq[Step] =
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
  protected def begin(s: CommitState, d: Driver): Seq[Step] = d match {
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
  protected def rewind(s: CommitState): Seq[Step] =
    if (!bounds.rewinds || s.rewound.isDefined || s.runs == bounds.runs.size) Nil
    else {
      val oldest = Bounds.oldestRetained(bounds, s)
      (math.max(0, oldest) until s.committed).map { to =>
        s"the query is rewound to batch $to" ->
          s.copy(committed = to, offsets = s.offsets.take(to + 1), drivers = Vector.empty, rewound = Some(oldest))
      }
    }

  /** Spark's job has ended. Spark creates an entry of its commit log, or finds an existing one. */
  protected def commit(s: CommitState, d: Running): Seq[Step] =
    if (d.committed || !begun(d).forall(isOver(d, _)) || begun(d).size < d.stages.size) Nil
    else if (s.committed >= d.batch || is(OffsetsLast) && s.offsets.size > d.batch)
      Seq(s"run ${d.run} is ended, batch ${d.batch} is committed" -> s.ends(d.run))
    else {
      val offsets = if (is(OffsetsLast)) s.offsets :+ d.run else s.offsets
      val next = d.copy(committed = true, stages = d.stages.map(_.copy(started = Map.empty)), alive = Set.empty)
      Seq(s"run ${d.run} commits batch ${d.batch}" -> s.withDriver(next).copy(committed = d.batch, offsets = offsets))
    }

  protected def open(s: CommitState, d: Running): Seq[Step] =
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
}
