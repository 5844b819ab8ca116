package io.penstock.state.protocol

import io.penstock.state.protocol.Driver.Running
import io.penstock.state.protocol.Mutation._

/** Attempts of tasks start, write, report, are answered or lost, and end. */
trait AttemptSteps extends StageSteps with ManifestSteps {

  /** A fetch fails. Nobody waits for the remaining attempts of the older stage attempt. */
  protected def submitAgain(s: CommitState, d: Running): Seq[Step] =
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
  protected def write(s: CommitState, d: Running): Seq[Step] =
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
  protected def report(s: CommitState, d: Running): Seq[Step] =
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
  protected def end(s: CommitState, d: Running): Seq[Step] = d.alive.toSeq.flatMap { a =>
    val answered = !d.unanswered(a) && !d.answers(a) || is(AnswerFurtherFirst) && d.written.isDefined
    val others = d.alive.filter(b => (b.stage, b.task) != ((a.stage, a.task)))
    val success = Option.when(answered)(s"$a succeeds" -> s.withDriver(succeeded(d, a).copy(alive = others)))
    val replaced = mayRetry(d) || mayResubmit(d) || d.waiting.nonEmpty || d.alive.size - others.size > 1
    val lost = Option.when(replaced)(s"$a is lost" -> s.withDriver(d.copy(alive = d.alive - a)))
    success ++ lost
  }
}
