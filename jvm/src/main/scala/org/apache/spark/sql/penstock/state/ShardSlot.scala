package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.collection.mutable

import io.penstock.state.engine.{ShardImage, ShardState}
import io.penstock.state.format.ShardRefs
import io.penstock.state.memory.{MemoryAccount, SharedBytes}
import io.penstock.state.snapshot.SnapshotPlan

/**
 * One shard of one store in this JVM: content at one lineage, and the deltas that attempts have prepared on top of it.
 *
 * An attempt never touches the content. When a later batch asks for a lineage, the content is brought there: at best by
 * folding the prepared delta of that name, else from the checkpoint.
 *
 * @param account
 *   counts the heap bytes of the content
 */
final class ShardSlot(val shard: Int, account: MemoryAccount) {
  import ShardSlot._

  private var content = new ShardState
  @volatile private var at: UUID = ShardRefs.NeverWritten
  private var prepared = mutable.LinkedHashMap[UUID, Prepared]()
  private var deltas = 0
  private var deltaBytes = 0L
  private var countedBytes = 0L
  private var openedFor = -1L

  /** What was folded last, and until which batch that is kept: an executor that has a replica wants no more than that. */
  private var last: Option[(UUID, Prepared)] = None
  private var keptUntil = -1L

  /** Open while content is on its way here. */
  @volatile private var arrival: CountDownLatch = _

  /** Content is on its way here: `expected` is to be called when it has come, or does not. */
  def expect(): Unit = synchronized { if (arrival == null) arrival = new CountDownLatch(1) }

  def expected(): Unit = synchronized {
    if (arrival != null) arrival.countDown()
    arrival = null
  }

  /** Waits for content that is on its way here, if there is any, until a time of the JVM's clock. */
  def awaitArrival(untilNs: Long): Unit = {
    val coming = arrival
    if (coming != null) coming.await(untilNs - System.nanoTime(), TimeUnit.NANOSECONDS): Unit
  }

  /**
   * The shard's content at a lineage. The caller reads it until its batch ends; it changes only for a later batch.
   *
   * @param wanted
   *   lineage that the batch starts from
   * @param batchId
   *   the batch
   * @param load
   *   rebuilds the content from the checkpoint; called only when memory does not have it
   */
  def open(wanted: UUID, batchId: Long)(load: => Loaded): Opened = synchronized {
    openedFor = batchId
    try bring(wanted, load)
    finally count()
  }

  private def bring(wanted: UUID, load: => Loaded): Opened =
    if (wanted == ShardRefs.NeverWritten) begin()
    else if (at == wanted) Opened(content, InMemory)
    else {
      prepared.get(wanted) match {
        case Some(p) if leadsOn(p.base) =>
          if (p.base != at) empty()
          fold(p.changes.array, p.offset, p.length)
          p.changes.retain()
          settle(wanted)
          if (keptUntil >= openedFor) last = Some(wanted -> p) else p.changes.release()
          Opened(content, Folded)
        case _ =>
          val loaded = load
          content = loaded.content
          deltas = loaded.deltas
          deltaBytes = loaded.deltaBytes
          settle(wanted)
          Opened(content, Brought)
      }
    }

  /** The content has no lineage until all of it is applied. */
  private def fold(changes: Array[Byte], offset: Int, length: Int): Unit = {
    at = ShardSlot.Unknown
    content(changes, offset, length)
    deltas += 1
    deltaBytes += length
  }

  /**
   * What is empty is nobody else's: where a place that a pinned hash had is for another, one task begins with nothing while
   * another brings the content to what the batch before has prepared.
   */
  private def begin(): Opened = {
    if (at != ShardRefs.NeverWritten) reset()
    Opened(new ShardState, InMemory)
  }

  /** As `open`, for the sake of another shard's task; None where memory does not have what leads to the lineage. */
  def openIfHeld(wanted: UUID, batchId: Long): Option[ShardState] = synchronized {
    Option.when(has(wanted))(open(wanted, batchId)(throw new IllegalStateException("it is held")).content)
  }

  /** Whether memory has what leads to the lineage. */
  def has(wanted: UUID): Boolean = synchronized {
    at == wanted || wanted == ShardRefs.NeverWritten || prepared.get(wanted).exists(p => leadsOn(p.base))
  }

  /** What began with nothing does so whatever another task has brought the content to; see `begin`. */
  private def leadsOn(base: UUID): Boolean = base == at || base == ShardRefs.NeverWritten

  /** Keeps what an attempt that started from `base` committed under the name `lineage`, until it is known to count. */
  def prepare(lineage: UUID, base: UUID, changes: SharedBytes, offset: Int, length: Int): Unit = synchronized {
    if (leadsOn(base)) {
      changes.retain()
      prepared.put(lineage, new Prepared(base, changes, offset, length)).foreach(_.changes.release())
      if (prepared.size > MaxPrepared) prepared.remove(prepared.head._1).foreach(_.changes.release())
    }
  }

  /**
   * Takes content that another executor hands over.
   *
   * @param version
   *   of the store that the content is of
   * @return
   *   whether memory has it now; not where a later batch has been here
   */
  def adopt(lineage: UUID, version: Long, loaded: => Loaded): Boolean = synchronized {
    if (openedFor <= version) {
      try bring(lineage, loaded)
      finally count()
      openedFor = version
    }
    has(lineage)
  }

  /**
   * Goes on to a lineage by change sets, oldest first.
   *
   * @return
   *   whether the content is what they start from
   */
  def goOn(from: UUID, lineage: UUID, changes: Seq[Array[Byte]]): Boolean = synchronized {
    val starts = at == from
    if (starts) {
      try {
        changes.foreach(set => fold(set, 0, set.length))
        settle(lineage)
      } finally count()
    }
    starts
  }

  /** Lineage of the content. */
  def lineage: UUID = at

  /** Lets go of everything; who opens the shard next loads it. */
  def forget(): Unit = synchronized {
    reset()
    count()
  }

  /** Lets go of a shard that no batch from `batchId` on has opened here. */
  def forgetUnlessOpenedSince(batchId: Long): Unit = synchronized(if (openedFor < batchId) forget())

  /** What has changed since the last snapshot; None where nothing has. */
  def snapshotCandidate: Option[SnapshotPlan.Candidate] =
    synchronized(Option.when(deltas > 0)(SnapshotPlan.Candidate(shard, deltas, deltaBytes, countedBytes)))

  /**
   * The content at a lineage, for another executor, or what leads to it from what the other has; None where memory does not
   * have what leads to it. What is given stays here as well.
   */
  def give(wanted: UUID, have: UUID): Option[Given] = synchronized {
    Option.when(wanted != ShardRefs.NeverWritten && has(wanted)) {
      keptUntil = openedFor + KeptBatches
      try bring(wanted, throw new IllegalStateException("it is held"))
      finally count()
      last.collect { case (lineage, p) if lineage == wanted && p.base == have => p }
        .fold[Given](GivenImage(content.image, deltas, deltaBytes))(p =>
          GivenChanges(p.changes.array, p.offset, p.length)
        )
    }
  }

  /** The content, its version and its lineage. */
  def image: (ShardImage, Long, UUID) = synchronized((content.image, openedFor, at))

  /** A snapshot of a lineage is durable. */
  def snapshotted(lineage: UUID): Unit = synchronized {
    if (at == lineage) {
      deltas = 0
      deltaBytes = 0L
    }
  }

  /** Heap bytes of the content, added up. */
  def contentBytes: Long = synchronized(content.memoryBytes)

  /** What attempts have prepared. */
  def preparedChanges: Iterable[SharedBytes] = synchronized(prepared.values.map(_.changes).toVector)

  /** Whether there is any content, be it empty. */
  def isHeld: Boolean = at != ShardRefs.NeverWritten

  private def reset(): Unit = {
    empty()
    settle(ShardRefs.NeverWritten)
  }

  private def empty(): Unit = {
    content = new ShardState
    deltas = 0
    deltaBytes = 0L
  }

  private def settle(lineage: UUID): Unit = {
    at = lineage
    prepared.valuesIterator.foreach(_.changes.release())
    prepared = mutable.LinkedHashMap()
    last.foreach(_._2.changes.release())
    last = None
  }

  private def count(): Unit = {
    val now = content.memoryBytes
    account.add(now - countedBytes)
    countedBytes = now
  }
}

object ShardSlot {

  /** Lineage of content that is half changed: no commit has this name. */
  private val Unknown = new UUID(-1L, -1L)

  /** Attempts of one batch whose deltas are kept: more than that have lost for certain. */
  private val MaxPrepared = 4

  /** Who asks in every batch may ask before this executor's tasks, or after them. */
  private val KeptBatches = 2

  /** Content from the checkpoint, with the number and bytes of the deltas that were applied to its snapshot. */
  final case class Loaded(content: ShardState, deltas: Int, deltaBytes: Long)

  /** What is given of a shard. */
  sealed trait Given

  /** All of it, and what it has of change sets since the last snapshot, and their bytes. */
  final case class GivenImage(image: ShardImage, deltas: Int, deltaBytes: Long) extends Given

  /** A change set: a part of an array that does not change. */
  final case class GivenChanges(array: Array[Byte], offset: Int, length: Int) extends Given

  final case class Opened(content: ShardState, source: Source)

  /** Where a shard's content came from when it was opened. */
  sealed trait Source
  case object InMemory extends Source
  case object Folded extends Source
  case object Brought extends Source

  final private class Prepared(val base: UUID, val changes: SharedBytes, val offset: Int, val length: Int)
}
