package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.locks.ReentrantLock
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.collection.mutable

import io.penstock.state.engine.{ShardImage, ShardState}
import io.penstock.state.format.ShardRefs
import io.penstock.state.memory.{MemoryAccount, SharedBytes}
import io.penstock.state.snapshot.SnapshotPlan

/**
 * One shard of one store in this JVM: content at one lineage, and the deltas that attempts have prepared on top of it.
 *
 * A task holds the content that it opens until it ends, and content that is held does not change: who brings the shard to
 * another lineage meanwhile (the next batch beside an attempt that has lost, an executor that ends and hands over what the
 * open batch has committed so far) changes a copy.
 *
 * @param account
 *   counts the heap bytes of the content, and of what tasks still hold of earlier content
 */
final class ShardSlot(val shard: Int, account: MemoryAccount) {
  import ShardSlot._

  private val lock = new ReentrantLock
  private var content = new Content(new ShardState)
  @volatile private var at: UUID = ShardRefs.NeverWritten
  private var prepared = mutable.LinkedHashMap[UUID, Prepared]()
  private var openedFor = -1L
  @volatile private var counted = 0L
  private var retired = 0L

  /** Changes in the content that no snapshot has, and the number of contents before this one, which were counted anew. */
  private var deltas = 0
  private var deltaBytes = 0L
  private var counting = 0L
  private var failedSnapshots = 0

  /** What was folded last, and until which batch that is kept: an executor that has a replica wants no more than that. */
  private var last: Option[(UUID, Prepared)] = None
  private var keptUntil = -1L

  /** Open while content is on its way here. */
  @volatile private var arrival: CountDownLatch = _

  private def locked[A](body: => A): A = {
    lock.lock()
    try body
    finally lock.unlock()
  }

  /** Content is on its way here: `expected` is to be called when it has come, or does not. */
  def expect(): Unit = locked { if (arrival == null) arrival = new CountDownLatch(1) }

  def expected(): Unit = locked {
    if (arrival != null) arrival.countDown()
    arrival = null
  }

  /** Waits for content that is on its way here, if there is any, until a time of the JVM's clock. */
  def awaitArrival(untilNs: Long): Unit = {
    val coming = arrival
    if (coming != null) coming.await(untilNs - System.nanoTime(), TimeUnit.NANOSECONDS): Unit
  }

  /**
   * The shard's content at a lineage. It does not change until the caller closes what it gets.
   *
   * @param wanted
   *   lineage that the batch starts from
   * @param batchId
   *   the batch
   * @param load
   *   rebuilds the content from the checkpoint; called only when memory does not have it
   */
  def open(wanted: UUID, batchId: Long)(load: => Loaded): Opened = locked {
    openedFor = batchId
    try
      if (wanted == ShardRefs.NeverWritten) begin()
      else {
        val source = bring(wanted, load)
        val read = content
        read.readers += 1
        new Opened(read.state, source, () => letGo(read))
      }
    finally count()
  }

  private def letGo(of: Content): Unit = locked {
    of.readers -= 1
    if (of.readers == 0) retire(of, 0L)
  }

  /** Brings the content to a lineage that is not the empty one. */
  private def bring(wanted: UUID, load: => Loaded): Source =
    if (at == wanted) InMemory
    else {
      prepared.get(wanted) match {
        case Some(p) if leadsOn(p.base) =>
          if (p.base != at) empty()
          fold(p.changes.array, p.offset, p.length)
          p.changes.retain()
          settle(wanted)
          if (keptUntil >= openedFor) last = Some(wanted -> p) else p.changes.release()
          Folded
        case _ =>
          val loaded = load
          replace(loaded.content)
          countAnew(loaded.deltas, loaded.deltaBytes)
          settle(wanted)
          Brought
      }
    }

  /** The content has no lineage until all of it is applied. */
  private def fold(changes: Array[Byte], offset: Int, length: Int): Unit = {
    if (content.readers > 0) replace(content.state.copied)
    at = ShardSlot.Unknown
    content.state(changes, offset, length)
    deltas += 1
    deltaBytes += length
  }

  private def replace(state: ShardState): Unit = {
    if (content.readers > 0) retire(content, content.state.memoryBytes)
    content = new Content(state)
  }

  /** Counts what tasks hold of content that is not the slot's any more. */
  private def retire(of: Content, bytes: Long): Unit = {
    val more = bytes - of.retiredBytes
    of.retiredBytes = bytes
    retired += more
    account.add(more)
  }

  private def countAnew(changes: Int, bytes: Long): Unit = {
    deltas = changes
    deltaBytes = bytes
    counting += 1
  }

  /**
   * What is empty is nobody else's: where a pin slot is for another hash than before, one task begins with nothing while
   * another brings the content to what the batch before has prepared.
   */
  private def begin(): Opened = {
    if (at != ShardRefs.NeverWritten) reset()
    new Opened(new ShardState, InMemory, () => ())
  }

  /** As `open`, for the sake of another shard's task; None where memory does not have what leads to the lineage. */
  def openIfHeld(wanted: UUID, batchId: Long): Option[Opened] = locked {
    Option.when(has(wanted))(open(wanted, batchId)(throw new IllegalStateException("it is held")))
  }

  /** Whether memory has what leads to the lineage. */
  def has(wanted: UUID): Boolean = locked {
    at == wanted || wanted == ShardRefs.NeverWritten || prepared.get(wanted).exists(p => leadsOn(p.base))
  }

  /** What began with nothing does so whatever another task has brought the content to; see `begin`. */
  private def leadsOn(base: UUID): Boolean = base == at || base == ShardRefs.NeverWritten

  /** Keeps what an attempt that started from `base` committed under the name `lineage`, until it is known to count. */
  def prepare(lineage: UUID, base: UUID, changes: SharedBytes, offset: Int, length: Int): Unit = locked {
    if (leadsOn(base)) {
      changes.retain()
      prepared.put(lineage, new Prepared(base, changes, offset, length)).foreach(_.changes.release())
      if (prepared.size > MaxPrepared) prepared.remove(prepared.head._1).foreach(_.changes.release())
    }
  }

  /**
   * Takes content that another executor hands over. What tasks of the open batch hold stays, and so does what they need to
   * commit: where change sets lead to the lineage, they are applied when a batch opens it.
   *
   * @param version
   *   of the store that the content is of
   * @return
   *   whether memory has it now; not where a later batch has been here
   */
  def adopt(lineage: UUID, version: Long, loaded: => Loaded): Boolean = locked {
    if (openedFor <= version && (content.readers == 0 || !has(lineage))) {
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
  def goOn(from: UUID, lineage: UUID, changes: Seq[Array[Byte]]): Boolean = locked {
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
  def forget(): Unit = locked {
    reset()
    count()
  }

  /** Lets go of a shard that no batch from `batchId` on has opened here, unless it is in use just now. Waits for nobody. */
  def forgetUnlessOpenedSince(batchId: Long): Unit =
    if (lock.tryLock()) {
      try if (openedFor < batchId) forget()
      finally lock.unlock()
    }

  /** What has changed since the last snapshot; None where nothing has. */
  def snapshotCandidate: Option[SnapshotPlan.Candidate] = locked {
    Option.when(deltas > 0)(
      SnapshotPlan.Candidate(shard, deltas, deltaBytes, counted, failedSnapshots)
    )
  }

  /**
   * The content at a lineage, for another executor, or what leads to it from what the other has; None where memory does not
   * have what leads to it, or where it is being loaded. What is given stays here as well.
   */
  def give(wanted: UUID, have: UUID): Option[Given] =
    if (!lock.tryLock(GiveLimitMs, TimeUnit.MILLISECONDS)) None
    else
      try
        Option.when(wanted != ShardRefs.NeverWritten && has(wanted)) {
          keptUntil = openedFor + KeptBatches
          prepared.get(wanted) match {
            case Some(p) if p.base == have => changesOf(p)
            case Some(p) if content.readers > 0 => imageOfCopy(p)
            case _ => giveFolded(wanted, have)
          }
        }
      finally lock.unlock()

  private def giveFolded(wanted: UUID, have: UUID): Given = {
    try bring(wanted, throw new IllegalStateException("it is held"))
    finally count()
    last.collect { case (lineage, p) if lineage == wanted && p.base == have => p }
      .fold[Given](GivenImage(content.state.image, deltas, deltaBytes))(changesOf)
  }

  /** The tasks that hold the content may still commit on top of it. */
  private def imageOfCopy(p: Prepared): Given = {
    val (copy, changes, bytes) =
      if (p.base == at) (content.state.copied, deltas, deltaBytes) else (new ShardState, 0, 0L)
    copy(p.changes.array, p.offset, p.length)
    GivenImage(copy.image, changes + 1, bytes + p.length)
  }

  private def changesOf(p: Prepared): Given = GivenChanges(p.changes.array, p.offset, p.length)

  /** The content for a snapshot; None where it is of no lineage. */
  def image: Option[SnapshotImage] = locked {
    Option.when(at != ShardSlot.Unknown && at != ShardRefs.NeverWritten) {
      new SnapshotImage(content.state.image, openedFor, at, counting, deltas, deltaBytes)
    }
  }

  /** A snapshot is durable: its changes are to be counted no more, whatever has come since. */
  def snapshotted(image: SnapshotImage): Unit = locked {
    failedSnapshots = 0
    if (image.counting == counting) {
      deltas -= image.deltas
      deltaBytes -= image.deltaBytes
    }
  }

  /** A snapshot could not be made. */
  def snapshotFailed(): Unit = locked(failedSnapshots += 1)

  /** Heap bytes of the content, as counted last. Waits for nobody. */
  def countedBytes: Long = counted

  /** Heap bytes of the content, added up. */
  def contentBytes: Long = locked(content.state.memoryBytes)

  /** Heap bytes of earlier content that tasks hold. */
  def retiredBytes: Long = locked(retired)

  /** What attempts have prepared. */
  def preparedChanges: Iterable[SharedBytes] = locked(prepared.values.map(_.changes).toVector)

  /** Whether there is any content, be it empty. */
  def isHeld: Boolean = at != ShardRefs.NeverWritten

  private def reset(): Unit = {
    empty()
    settle(ShardRefs.NeverWritten)
  }

  private def empty(): Unit = {
    replace(new ShardState)
    countAnew(0, 0L)
  }

  private def settle(lineage: UUID): Unit = {
    at = lineage
    prepared.valuesIterator.foreach(_.changes.release())
    prepared = mutable.LinkedHashMap()
    last.foreach(_._2.changes.release())
    last = None
  }

  private def count(): Unit = {
    val now = content.state.memoryBytes
    account.add(now - counted)
    counted = now
  }
}

object ShardSlot {

  /** Lineage of content that is half changed: no commit has this name. */
  private val Unknown = new UUID(-1L, -1L)

  /** Attempts of one batch whose deltas are kept: more than that have lost for certain. */
  private val MaxPrepared = 4

  /** The checkpoint has what is not given: who asks must not wait for as long as a file system that hangs. */
  private val GiveLimitMs = 1000L

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

  /**
   * Content that a task holds.
   *
   * @param content
   *   does not change until this is closed
   */
  final class Opened private[ShardSlot] (val content: ShardState, val source: Source, letGo: () => Unit)
      extends AutoCloseable {
    private val open = new AtomicBoolean(true)

    override def close(): Unit = if (open.compareAndSet(true, false)) letGo()
  }

  /**
   * A shard's content at a lineage, to be written as a snapshot.
   *
   * @param version
   *   of the store
   * @param deltas
   *   how many change sets it has that no snapshot had before
   */
  final class SnapshotImage private[ShardSlot] (
      val image: ShardImage,
      val version: Long,
      val lineage: UUID,
      private[ShardSlot] val counting: Long,
      private[ShardSlot] val deltas: Int,
      private[ShardSlot] val deltaBytes: Long
  )

  /**
   * What a slot's readers see.
   *
   * @param state
   *   never changes while there are readers
   */
  final private class Content(val state: ShardState) {
    var readers = 0
    var retiredBytes = 0L
  }

  /** Where a shard's content came from when it was opened. */
  sealed trait Source
  case object InMemory extends Source
  case object Folded extends Source
  case object Brought extends Source

  final private class Prepared(val base: UUID, val changes: SharedBytes, val offset: Int, val length: Int)
}
