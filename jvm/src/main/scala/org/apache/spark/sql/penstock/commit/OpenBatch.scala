package org.apache.spark.sql.penstock.commit

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.penstock.lease._

import OpenBatch._
import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.format._

/**
 * A batch whose tasks may commit: which attempt counts for each shard. Docs: PROTOCOL.md, "Commit". Not thread safe.
 *
 * Commits come in rounds. The first is that of the first action on the batch. Each further action, which runs all tasks again,
 * makes a further round, and nothing of it counts before it is complete.
 *
 * @param base
 *   the state that the batch starts from
 * @param attempts
 *   what Spark says of attempts
 */
final private class OpenBatch(
    val spec: BatchSpec,
    layouts: Map[Long, Layout],
    val base: Manifest,
    private var generation: Long,
    attempts: AttemptStates
) {
  private val regions = (for (r <- spec.regions; o <- r.operators) yield o.operatorId -> r).toMap
  private val expected =
    (for (r <- spec.regions; key <- r.stores) yield key -> (if (r.single) 1 else layout(r.region).shards)).toMap

  private var round = new Round(expected)
  private var further: Option[Round] = None
  private var notedCommits = 0L

  /** What the newest generation of the manifest says; none before the first. */
  var written: Option[Manifest] = None

  /** Where set, nothing is taken any more. */
  var closed = false

  def regionOf(operatorId: Long): Option[Long] = regions.get(operatorId).map(_.region)

  def layout(region: Long): Layout = layouts.getOrElse(region, Layout(spec.shardCount))

  /** Pinned hashes of the stores that have any. */
  private def pinSlots: Map[StoreKey, Vector[Option[Int]]] =
    (for (r <- spec.regions; key <- r.stores) yield key -> layout(r.region).pinSlots).filter(_._2.nonEmpty).toMap

  /** Whether no attempt has committed a shard. */
  def isUntouched(region: Long, shard: Int): Boolean = expected.forall { case (key, n) =>
    regions(key.operatorId).region != region || shard >= n || newest(key, shard) == null
  }

  private def newest(key: StoreKey, shard: Int): Entry =
    further.map(_.entries(key)(shard)).filter(_ != null).getOrElse(round.entries(key)(shard))

  /**
   * Takes note of a commit, where it counts.
   *
   * @param waited
   *   whether it has waited for others for long enough
   */
  def note(c: TaskCommitted, waited: Boolean): Noted = {
    c.stores.find(s => !expected.contains(s.store)).foreach { s =>
      throw new PenstockException(
        "PENSTOCK_UNPLANNED_STORE",
        s"${c.attempt} commits store ${s.store.storeName} of operator ${s.store.operatorId}, which the plan of batch " +
          s"${spec.batchId} does not have"
      )
    }
    val isFurther = round.isComplete && !round.stages(c.attempt.stageId)
    if (isFurther && round.stages.exists(_ > c.attempt.stageId)) Noted.Overtaken
    else {
      val to = if (isFurther) further.getOrElse(new Round(expected)) else round
      against(c, to.rivals(c), waited) match {
        case Some(refusal) => refusal
        case None =>
          if (isFurther) further = Some(to)
          to.put(c)
          if (isFurther && to.isComplete) {
            round = to
            further = None
          }
          if (round.isComplete && (to eq round)) {
            notedCommits += 1
            Noted.Waits(notedCommits)
          } else Noted.Counts
      }
    }
  }

  /** Spark's order: a later stage, a later attempt of it, and of attempts of one task the first that may yet count. */
  private def against(c: TaskCommitted, rivals: Iterable[TaskAttempt], waited: Boolean): Option[Noted] = {
    val own = c.attempt
    val answers = rivals.iterator.filter(r => r.stageId == own.stageId && r.id != own.id).map { r =>
      if (r.stageAttempt != own.stageAttempt) Option.when(r.stageAttempt > own.stageAttempt)(Noted.Denied(r))
      else
        attempts.of(r) match {
          case AttemptState.Failed => None
          case AttemptState.Succeeded => Some(Noted.Denied(r))
          case AttemptState.Running => Option.when(!waited)(Noted.Undecided(r))
        }
    }.flatten.toSeq
    answers.collectFirst { case d: Noted.Denied => d }.orElse(answers.headOption)
  }

  /** What is known of shards of a store in the memory of those that ran them last: by version, each with its lineage. */
  def held(key: StoreKey, shards: Seq[Int]): Seq[OfferedStore] = {
    val now = layout(regions(key.operatorId).region)
    val before = base.stores.get(key)
    val found = shards.filter(_ < expected(key)).map { shard =>
      val e = newest(key, shard)
      val lineage =
        if (e != null && e.section != null) e.commit.lineage
        else before.filter(_ => now.continues(shard, base.layout(key))).fold(ShardRefs.NeverWritten)(_(shard).lineage)
      (spec.batchId + (if (e == null) 0 else 1), shard, lineage)
    }
    found.filter(_._3 != ShardRefs.NeverWritten).groupBy(_._1).toSeq.map { case (version, these) =>
      OfferedStore(key, version, these.map(s => (s._2, s._3)))
    }
  }

  /** A few words about who is missing. */
  def missing: String = round.entries.iterator
    .collect {
      case (k, of) if of.contains(null) =>
        s"${of.count(_ == null)} of ${of.length} shards of operator ${k.operatorId}"
    }
    .mkString(", ")

  /** The manifest that is written next. */
  def nextManifest: Container.InManifest = Container.InManifest(spec.batchId, generation + 1)

  /**
   * The state after the batch as it is noted now, as the next generation; one whose write has failed may be on record all the
   * same, and is not used again.
   */
  def fold(
      runId: UUID,
      retainedFrom: Long,
      nowMs: Long,
      snapshots: mutable.Map[(StoreKey, Int), SnapshotRef]
  ): Folded = {
    val own = nextManifest
    generation += 1
    val entries = round.entries.map { case (key, of) => key -> of.clone() }
    val payload = new ByteSink(inlineBytes(entries))
    val stores = foldStores(entries, own, payload, snapshots)
    val m =
      Manifest(spec.batchId, generation, base.generation, retainedFrom, runId, nowMs, spec.shardCount, stores, pinSlots)
    new Folded(m, own, payload, entries, notedCommits)
  }

  /** Bytes of changes that no file has yet. */
  private def inlineBytes(entries: Map[StoreKey, Array[Entry]]): Int = {
    val waiting = entries.valuesIterator.flatMap(_.iterator).filter(e => e.commit.payload != null).map(_.commit)
    waiting.map(c => c.lineage -> c.payload.length).toMap.valuesIterator.sum
  }

  /** Inline sections are copied into `payload`, each commit's once. */
  private def foldStores(
      entries: Map[StoreKey, Array[Entry]],
      own: Container.InManifest,
      payload: ByteSink,
      snapshots: mutable.Map[(StoreKey, Int), SnapshotRef]
  ): Map[StoreKey, Vector[ShardRefs]] = {
    val copiedAt = mutable.Map[UUID, Long]()
    entries.map { case (key, of) =>
      val before = base.stores.get(key)
      val now = layout(regions(key.operatorId).region)
      key -> Vector.tabulate(of.length) { shard =>
        val kept = before.filter(_ => now.continues(shard, base.layout(key))).fold(ShardRefs.Empty)(_(shard))
        val refs = snapshots.get((key, shard)).flatMap(kept.withSnapshot).getOrElse(kept)
        val e = of(shard)
        if (e.section == null) refs
        else {
          val c = e.commit
          val (container, at) =
            if (e.inManifest != null) (e.inManifest._1, e.inManifest._2)
            else if (c.payload == null) (Container.Changelog(c.batchId, c.lineage), c.payloadAt)
            else {
              val start = copiedAt.getOrElseUpdate(
                c.lineage, {
                  val p = payload.size.toLong
                  payload.putBytes(c.payload)
                  p
                }
              )
              (own, start)
            }
          val s = SectionRef(container, at + e.section.offset, e.section.length, e.section.crc)
          refs.copy(deltas = refs.deltas :+ DeltaRef(c.batchId + 1, c.lineage, s))
        }
      }
    }
  }

  /** Notes that a generation is durable; inline payloads are in it now and need not be kept. */
  def wrote(f: Folded, m: Manifest): Unit = {
    written = Some(m)
    for ((key, of) <- round.entries; shard <- of.indices) {
      val e = of(shard)
      if ((e eq f.entries(key)(shard)) && e.section != null && e.commit.payload != null && e.inManifest == null) {
        val at = m.stores(key)(shard).deltas.last.section.offset - e.section.offset
        of(shard) = new Entry(e.commit.copy(payload = Array.emptyByteArray), e.section, (f.own, at))
      }
    }
  }
}

private object OpenBatch {

  /** What becomes of a commit. */
  sealed trait Noted

  object Noted {

    /** It counts, and the batch is not durable with it, or is so without it. */
    case object Counts extends Noted

    /** A later action has committed: it changes nothing. */
    case object Overtaken extends Noted

    /** It counts, and has to be durable before its task is answered: with a manifest of so many commits, or more. */
    final case class Waits(commits: Long) extends Noted

    /** Another attempt counts. */
    final case class Denied(by: TaskAttempt) extends Noted

    /** Another attempt counts unless it fails. */
    final case class Undecided(by: TaskAttempt) extends Noted
  }

  /**
   * A manifest to be written.
   *
   * @param commits
   *   how many commits it has
   */
  final class Folded(
      val manifest: Manifest,
      val own: Container.InManifest,
      val payload: ByteSink,
      val entries: Map[StoreKey, Array[Entry]],
      val commits: Long
  )

  /** Per store and shard the attempt that counts. */
  final private class Round(expected: Map[StoreKey, Int]) {
    val entries: Map[StoreKey, Array[Entry]] = expected.map { case (k, n) => k -> new Array[Entry](n) }

    /** Those whose tasks have committed in it. */
    val stages: mutable.Set[Int] = mutable.Set.empty
    private var waitingFor = expected.valuesIterator.sum

    def isComplete: Boolean = waitingFor == 0

    /** Attempts that count for shards of a commit. */
    def rivals(c: TaskCommitted): Set[TaskAttempt] =
      (for (s <- c.stores.iterator; shard <- s.shards.iterator; e = entries(s.store)(shard) if e != null)
        yield e.commit.attempt).toSet

    def put(c: TaskCommitted): Unit = {
      stages += c.attempt.stageId
      c.stores.foreach { s =>
        val of = entries(s.store)
        val bySection = s.sections.iterator.map(x => x.shard -> x).toMap
        s.shards.foreach { shard =>
          if (of(shard) == null) waitingFor -= 1
          if (of(shard) == null || of(shard).commit.attempt.stageId <= c.attempt.stageId)
            of(shard) = new Entry(c, bySection.get(shard).orNull)
        }
      }
    }
  }

  /**
   * @param section
   *   null where the attempt changed nothing in the shard
   * @param inManifest
   *   where the commit's payload was written, once it was
   */
  final class Entry(
      val commit: TaskCommitted,
      val section: Section,
      val inManifest: (Container.InManifest, Long) = null
  )
}
