package org.apache.spark.sql.penstock.commit

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.penstock.lease._

import OpenBatch._
import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.format._

/**
 * A batch whose tasks may commit. Tracks which attempt counts for each shard. Docs: PROTOCOL.md, "Commit". Not thread
 * safe.
 *
 * Commits come in rounds. The first round is that of the first action on the batch. Each further action runs all tasks
 * again and makes a further round, which counts only once it is complete.
 *
 * @param layouts
 *   layout of each region's state in the batch
 * @param base
 *   state that the batch starts from
 * @param generation
 *   newest generation of the batch's manifest so far, -1 if there is none
 * @param attempts
 *   states of task attempts in Spark's scheduler
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

  /** Newest generation of the batch's manifest that this run has written; None before the first. */
  var written: Option[Manifest] = None

  /** Whether commits of the batch are rejected. */
  var closed = false

  def regionOf(operatorId: Long): Option[Long] = regions.get(operatorId).map(_.region)

  def layout(region: Long): Layout = layouts.getOrElse(region, Layout(spec.shardCount))

  /** Pin slots of the stores that have any. */
  private def pinSlots: Map[StoreKey, Vector[Option[Int]]] =
    (for (r <- spec.regions; key <- r.stores) yield key -> layout(r.region).pinSlots).filter(_._2.nonEmpty).toMap

  /** Whether no attempt has committed the shard. */
  def isUntouched(region: Long, shard: Int): Boolean = expected.forall { case (key, n) =>
    regions(key.operatorId).region != region || shard >= n || newest(key, shard) == null
  }

  private def newest(key: StoreKey, shard: Int): Entry =
    further.map(_.entries(key)(shard)).filter(_ != null).getOrElse(round.entries(key)(shard))

  /**
   * Records a commit if it counts.
   *
   * @param waited
   *   whether the commit has already waited as long as it may for other attempts to end
   */
  def note(c: TaskCommitted, waited: Boolean): Noted = {
    c.stores.find(s => !expected.contains(s.store)).foreach { s =>
      throw new PenstockException(
        "PENSTOCK_UNPLANNED_STORE",
        s"${c.attempt} commits store ${s.store.storeName} of operator ${s.store.operatorId}, but the plan of batch " +
          s"${spec.batchId} does not contain that store"
      )
    }
    val isFurther = round.isComplete && !round.stages(c.attempt.stageId)
    if (isFurther && round.stages.exists(_ > c.attempt.stageId)) Noted.Overtaken
    else {
      val target = if (isFurther) further.getOrElse(new Round(expected)) else round
      compare(c, target.rivals(c), waited) match {
        case Some(refusal) => refusal
        case None =>
          if (isFurther) further = Some(target)
          target.put(c)
          if (isFurther && target.isComplete) {
            round = target
            further = None
          }
          if (round.isComplete && (target eq round)) {
            notedCommits += 1
            Noted.Waits(notedCommits)
          } else Noted.Counts
      }
    }
  }

  /**
   * Compares a commit with the attempts that count so far, in Spark's order: a newer attempt of a stage wins, and among
   * attempts of one task the first one that may still count. An attempt of another stage is no reason to refuse: in a
   * round, the later stage wins. Returns None if the commit counts.
   */
  private def compare(c: TaskCommitted, rivals: Iterable[TaskAttempt], waited: Boolean): Option[Noted] = {
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

  /** Shards of a store that the executors which ran them last hold in memory: by version, each with its lineage. */
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

  /** Describes the shards that no attempt has committed, for error messages. */
  def missing: String = round.entries.iterator
    .collect {
      case (k, entries) if entries.contains(null) =>
        s"${entries.count(_ == null)} of ${entries.length} shards of operator ${k.operatorId}"
    }
    .mkString(", ")

  /** File of the manifest that is written next. */
  def nextManifest: Container.InManifest = Container.InManifest(spec.batchId, generation + 1)

  /**
   * Builds the next generation of the manifest from the commits that are recorded so far. Each generation is used only
   * once, because a write that failed may have left its file.
   */
  def fold(
      runId: UUID,
      retainedFrom: Long,
      nowMs: Long,
      snapshots: collection.Map[(StoreKey, Int), SnapshotRef]
  ): Folded = {
    val own = nextManifest
    generation += 1
    val entries = round.entries.map { case (key, ofStore) => key -> ofStore.clone() }
    val payload = new ByteSink(inlineBytes(entries))
    val stores = foldStores(entries, own, payload, snapshots)
    val m =
      Manifest(spec.batchId, generation, base.generation, retainedFrom, runId, nowMs, spec.shardCount, stores, pinSlots)
    new Folded(m, own, payload, entries, notedCommits)
  }

  /** Bytes of changes that are not in a file yet. */
  private def inlineBytes(entries: Map[StoreKey, Array[Entry]]): Int = {
    val waiting = entries.valuesIterator.flatMap(_.iterator).filter(e => e.commit.payload != null).map(_.commit)
    waiting.map(c => c.lineage -> c.payload.length).toMap.valuesIterator.sum
  }

  /** State of all stores after the commits. Copies inline sections to `payload`, once for each commit. */
  private def foldStores(
      entries: Map[StoreKey, Array[Entry]],
      own: Container.InManifest,
      payload: ByteSink,
      snapshots: collection.Map[(StoreKey, Int), SnapshotRef]
  ): Map[StoreKey, Vector[ShardRefs]] = {
    val copiedAt = mutable.Map[UUID, Long]()
    entries.map { case (key, ofStore) =>
      val before = base.stores.get(key)
      val now = layout(regions(key.operatorId).region)
      key -> Vector.tabulate(ofStore.length) { shard =>
        val kept = before.filter(_ => now.continues(shard, base.layout(key))).fold(ShardRefs.Empty)(_(shard))
        val refs = snapshots.get((key, shard)).flatMap(kept.withSnapshot).getOrElse(kept)
        val e = ofStore(shard)
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

  /** Records that a generation is durable. Inline payloads are in its file now, so they are dropped. */
  def wrote(f: Folded, m: Manifest): Unit = {
    written = Some(m)
    for ((key, ofStore) <- round.entries; shard <- ofStore.indices) {
      val e = ofStore(shard)
      if ((e eq f.entries(key)(shard)) && e.section != null && e.commit.payload != null && e.inManifest == null) {
        val at = m.stores(key)(shard).deltas.last.section.offset - e.section.offset
        ofStore(shard) = new Entry(e.commit.copy(payload = Array.emptyByteArray), e.section, (f.own, at))
      }
    }
  }
}

private object OpenBatch {

  /** Outcome of a commit. */
  sealed trait Noted

  object Noted {

    /** The commit counts, and its round is not complete yet: its task is answered without waiting for a manifest. */
    case object Counts extends Noted

    /** A later action has committed, so the commit changes nothing. */
    case object Overtaken extends Noted

    /** The commit counts. Its task is answered once a manifest with at least `commits` commits is durable. */
    final case class Waits(commits: Long) extends Noted

    /** Another attempt counts. */
    final case class Denied(by: TaskAttempt) extends Noted

    /** Another attempt counts unless it fails, which is not known yet. */
    final case class Undecided(by: TaskAttempt) extends Noted
  }

  /**
   * A manifest that is to be written.
   *
   * @param own
   *   its file
   * @param commits
   *   number of commits that it contains, as counted by [[Noted.Waits]]
   */
  final class Folded(
      val manifest: Manifest,
      val own: Container.InManifest,
      val payload: ByteSink,
      val entries: Map[StoreKey, Array[Entry]],
      val commits: Long
  )

  /** The attempt that counts for each shard of each store. */
  final private class Round(expected: Map[StoreKey, Int]) {
    val entries: Map[StoreKey, Array[Entry]] = expected.map { case (k, n) => k -> new Array[Entry](n) }

    /** Stages whose tasks have committed in this round. */
    val stages: mutable.Set[Int] = mutable.Set.empty
    private var waitingFor = expected.valuesIterator.sum

    def isComplete: Boolean = waitingFor == 0

    /** Attempts that count so far for the shards of a commit. */
    def rivals(c: TaskCommitted): Set[TaskAttempt] =
      (for (s <- c.stores.iterator; shard <- s.shards.iterator; e = entries(s.store)(shard) if e != null)
        yield e.commit.attempt).toSet

    def put(c: TaskCommitted): Unit = {
      stages += c.attempt.stageId
      c.stores.foreach { s =>
        val ofStore = entries(s.store)
        val sections = s.sections.iterator.map(x => x.shard -> x).toMap
        s.shards.foreach { shard =>
          if (ofStore(shard) == null) waitingFor -= 1
          if (ofStore(shard) == null || ofStore(shard).commit.attempt.stageId <= c.attempt.stageId)
            ofStore(shard) = new Entry(c, sections.get(shard).orNull)
        }
      }
    }
  }

  /**
   * The commit that counts for a shard.
   *
   * @param section
   *   changes of the shard; null if the attempt did not change it
   * @param inManifest
   *   manifest and offset at which the commit's inline payload was written; null before that
   */
  final class Entry(
      val commit: TaskCommitted,
      val section: Section,
      val inManifest: (Container.InManifest, Long) = null
  )
}
