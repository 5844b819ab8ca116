package io.penstock.state.protocol

import io.penstock.state.protocol.ShardMemoryMutation._
import io.penstock.state.protocol.ShardMemoryState._

/**
 * Model of a shard in the memory of executors, docs/PROTOCOL.md, sections 7 and 13, as a state machine with small
 * steps: attempts that open, read and write the shard, change sets and images that are sent between executors,
 * manifests and their cache, and snapshots. [[CommitModel]] covers which attempt counts. Here an attempt counts if it
 * reports while no other one counts.
 *
 * A task stops only with its executor. A task that takes no more steps is equivalent to a stopped one, and keeps the
 * content that it has opened.
 */
final case class ShardMemoryModel(bounds: ShardMemoryBounds, mutation: Option[ShardMemoryMutation] = None) {

  private type Step = (String, ShardMemoryState)

  def search(limit: Int): Search[ShardMemoryState] =
    Search.exhaustive(ShardMemoryState(Driver(), Vector.fill(bounds.executors)(Executor())), limit)(steps)(
      ShardMemoryProperties.violation
    )

  /** All possible steps, each with its name for the trace. */
  def steps(s: ShardMemoryState): Seq[Step] =
    start(s) ++ s.tasks.toSeq.flatMap(t => open(s, t) ++ write(s, t) ++ report(s, t) ++ end(s, t)) ++
      nextBatch(s) ++ beginAnew(s) ++ handOver(s) ++ endExecutor(s) ++ snapshot(s)

  private def is(m: ShardMemoryMutation): Boolean = mutation.contains(m)

  private def alive(s: ShardMemoryState): Seq[Int] = s.executors.indices.filter(s.executors(_).alive)

  // ---- batches

  private def nextBatch(s: ShardMemoryState): Seq[Step] = {
    val d = s.driver
    if (!d.succeeded || d.batch + 1 == bounds.batches) Nil
    else {
      val next =
        Driver(d.life, d.batch + 1, base = d.reported, baseGeneration = d.generation - 1, snapshot = d.snapshot)
      val newest = s.manifests.filter { case ((b, _), _) => b == d.batch }
      Seq(s"batch ${next.batch} begins" -> s.copy(next, tasks = unfinished(s), manifests = newest))
    }
  }

  /** The checkpoint is deleted, and the query is started again in the same application. */
  private def beginAnew(s: ShardMemoryState): Seq[Step] =
    if (s.driver.life + 1 == bounds.lives) Nil
    else {
      val next = Driver(life = s.driver.life + 1)
      Seq(s"life ${next.life} begins" -> ShardMemoryState(next, s.executors, unfinished(s)))
    }

  /** Tasks that may still take steps after their batch is over. */
  private def unfinished(s: ShardMemoryState): Set[Task] = s.tasks.filter(_.seen.isEmpty)

  // ---- attempts

  private def start(s: ShardMemoryState): Seq[Step] = {
    val d = s.driver
    if (d.succeeded || d.attempts == bounds.attempts(d.batch)) Nil
    else
      alive(s).map { e =>
        val t = Task(e, d.life, d.batch, d.attempts, d.base, d.baseGeneration)
        s"$t starts on executor $e" -> s.copy(d.copy(attempts = d.attempts + 1), tasks = s.tasks + t)
      }
  }

  /**
   * The slot brings its content to the lineage of the lease, from one of the possible sources. The task then holds it.
   */
  private def open(s: ShardMemoryState, t: Task): Seq[Step] =
    if (t.held.isDefined) Nil
    else {
      val e = t.executor
      val here = s.executors(e)
      val right = here.slot.exists(at => at.lineage == t.lease || is(OpenByBatch) && sameBatch(at.lineage, t.lease))
      val sources =
        if (right) Seq("finds it" -> s)
        else
          fold(s, e, t.lease).map("folds a change set" -> _).toSeq ++ ask(s, e, t.lease) ++ catchUp(s, t) ++ load(s, t)
      sources.map { case (how, next) =>
        s"$t opens ${show(t.lease)}, $how" -> next.withTask(t, t.copy(held = next.executors(e).slot.map(_.content)))
      }
    }

  private def write(s: ShardMemoryState, t: Task): Seq[Step] =
    if (t.held.isEmpty || t.seen.isDefined) Nil
    else {
      val here = s.executors(t.executor)
      val next = s.withExecutor(t.executor, here.copy(prepared = here.prepared + t.commit))
      Seq(s"$t writes" -> next.withTask(t, t.copy(seen = t.held)))
    }

  /**
   * An attempt waits while another attempt that counts is running. It is refused if that one has succeeded or the batch
   * is over.
   */
  private def report(s: ShardMemoryState, t: Task): Seq[Step] = {
    val d = s.driver
    val isLate = t.life != d.life || t.batch != d.batch
    val isSecond = d.succeeded || s.tasks.exists(other => d.reported.contains(other.commit))
    if (t.seen.isEmpty || t.reported || isLate || isSecond) Nil
    else {
      val id = (d.batch, d.generation)
      val next = d.copy(generation = d.generation + 1, reported = Some(t.commit))
      val m = manifest(s, t.commit)
      val name = s"$t reports, manifest ${id._1}.${id._2}${if (m.snapshot.isDefined) " with a snapshot" else ""}"
      Seq(name -> s.copy(next, manifests = s.manifests.updated(id, m)).withTask(t, t.copy(reported = true)))
    }
  }

  /** Spark learns how an attempt has ended. */
  private def end(s: ShardMemoryState, t: Task): Seq[Step] =
    if (!t.reported) Nil
    else {
      val next = s.copy(tasks = s.tasks - t)
      Seq(s"$t is lost" -> next, s"$t succeeds" -> next.copy(s.driver.copy(succeeded = true)))
    }

  // ---- content

  private def sameBatch(a: Lineage, b: Lineage): Boolean = a.map(_.batch) == b.map(_.batch)

  /** The slot advances to a later lineage. Tasks that hold its content keep it: the slot gets a copy. */
  private def forward(s: ShardMemoryState, e: Int, image: Image): ShardMemoryState = {
    val here = s.executors(e)
    val tasks =
      if (!is(FoldInPlace)) s.tasks
      else
        s.tasks.map { t =>
          if (t.executor == e && t.held.isDefined && here.has(t.lease)) t.copy(held = Some(image.content)) else t
        }
    s.copy(tasks = tasks).withExecutor(e, here.withSlot(image))
  }

  /** Advances the slot by the change set of an attempt that ran on the executor. */
  private def fold(s: ShardMemoryState, e: Int, to: Lineage): Option[ShardMemoryState] = {
    val here = s.executors(e)
    for {
      at <- here.slot
      c <- here.prepared.find { c =>
        if (is(FoldByBatch)) c.base == at.lineage && sameBatch(Some(c), to)
        else to.contains(c) && (c.base == at.lineage || is(FoldIntoAny))
      }
    } yield forward(s, e, Image(to, at.content :+ c))
  }

  /** Another executor sends an image, or the change set that leads from this executor's content to the lineage. */
  private def ask(s: ShardMemoryState, e: Int, to: Lineage): Seq[Step] =
    alive(s).filter(_ != e).flatMap { source =>
      val folds = if (s.executors(source).has(to)) Seq(s) else fold(s, source, to).toSeq
      val gives = if (is(GiveByName) && s.executors(source).slot.isDefined) Seq(s) else folds
      val images = gives.flatMap { next =>
        next.executors(source).slot.map { at =>
          s"executor $source gives an image" ->
            next.withExecutor(e, next.executors(e).withSlot(Image(to, at.content)))
        }
      }
      val changes = for {
        at <- s.executors(e).slot
        c <- to
        if c.base == at.lineage && (s.executors(source).has(to) || s.executors(source).prepared(c))
      } yield s"executor $source gives a change set" -> forward(s, e, Image(to, at.content :+ c))
      images ++ changes
    }

  /** If the slot's content is in the history of the lease, missing changes come from the checkpoint. */
  private def catchUp(s: ShardMemoryState, t: Task): Option[Step] =
    for {
      at <- s.executors(t.executor).slot
      (m, next) <- manifest(s, t)
      had =
        if (is(CatchUpByBatch)) at.content.size - m.snapshot.fold(0)(_.content.size)
        else at.lineage.fold(0)(m.deltas.indexOf(_) + 1)
      if had > 0
    } yield "catches up" -> forward(next, t.executor, Image(t.lease, at.content ++ m.deltas.drop(had)))

  private def load(s: ShardMemoryState, t: Task): Option[Step] = {
    val loaded =
      if (t.lease.isEmpty) Some(Vector.empty -> s) else manifest(s, t).map { case (m, next) => m.content -> next }
    loaded.map { case (content, next) =>
      "loads it" -> next.withExecutor(t.executor, next.executors(t.executor).withSlot(Image(t.lease, content)))
    }
  }

  // ---- manifests

  /**
   * The manifest from the cache. One of another lineage is dropped and read again. If that is wrong too, the task
   * fails.
   */
  private def manifest(s: ShardMemoryState, t: Task): Option[(Manifest, ShardMemoryState)] = {
    val here = s.executors(t.executor)
    def isRight(m: Manifest) = t.lease.contains(m.lineage)
    here.cache.get(t.manifest).filter(m => isRight(m) || is(TrustCachedManifest)).map(_ -> s).orElse {
      s.manifests.get(t.manifest).filter(m => isRight(m) || is(TrustReadManifest)).map { m =>
        m -> s.withExecutor(t.executor, here.copy(cache = here.cache.updated(t.manifest, m)))
      }
    }
  }

  /** The manifest that the driver writes after an attempt has reported. */
  private def manifest(s: ShardMemoryState, c: Commit): Manifest = {
    val base = s.manifests.get((s.driver.batch - 1, s.driver.baseGeneration))
    val m = Manifest(c, base.flatMap(_.snapshot), base.toVector.flatMap(_.deltas) :+ c)
    s.driver.snapshot.fold(m) { image =>
      val held =
        if (is(SnapshotByBatch)) image.content.size - m.snapshot.fold(0)(_.content.size)
        else image.lineage.fold(0)(m.deltas.indexOf(_) + 1)
      if (held > 0) m.copy(snapshot = Some(image), deltas = m.deltas.drop(held)) else m
    }
  }

  // ---- other steps

  /**
   * Hands over, before the executor ends or on the driver's order, what the open batch has committed or starts from.
   */
  private def handOver(s: ShardMemoryState): Seq[Step] = {
    val to = s.driver.reported.orElse(s.driver.base)
    if (!bounds.handsOver || to.isEmpty) Nil
    else
      for {
        e <- alive(s).filter(!s.executors(_).has(to))
        (how, next) <- ask(s, e, to)
      } yield s"executor $e adopts ${show(to)}, $how" -> next
  }

  /** An executor ends together with its tasks. An orderly end is covered by the hand-over steps before it. */
  private def endExecutor(s: ShardMemoryState): Seq[Step] =
    if (alive(s).size == 1 || s.executors.count(!_.alive) == bounds.ends) Nil
    else
      alive(s).map { e =>
        s"executor $e ends" ->
          s.withExecutor(e, Executor(alive = false)).copy(tasks = s.tasks.filter(_.executor != e))
      }

  /**
   * An executor writes the content of its slot and reports it at any later time. One snapshot in each life is enough.
   */
  private def snapshot(s: ShardMemoryState): Seq[Step] = s.image match {
    case Some(image) =>
      Seq(s"snapshot of ${show(image.lineage)} is reported" ->
        s.copy(s.driver.copy(snapshot = s.image), image = None))
    case None if !bounds.snapshots || s.driver.snapshot.isDefined => Nil
    case None =>
      s.executors.flatMap(_.slot).filter(_.lineage.isDefined).distinct.map { at =>
        val isOpen = s.driver.reported.isDefined && at.lineage == s.driver.reported
        val image = if (is(SnapshotOfBase) && isOpen) at.copy(lineage = s.driver.base) else at
        s"snapshot of ${show(image.lineage)} is written" -> s.copy(image = Some(image))
      }
  }
}
