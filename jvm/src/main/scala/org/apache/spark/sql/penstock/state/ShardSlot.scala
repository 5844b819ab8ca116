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
 * One shard of one store in this JVM: its content at one lineage, and the deltas that attempts have prepared on top of
 * it.
 *
 * A task holds the content that it opens until it ends, and content that is held does not change. If the shard must be
 * brought to another lineage meanwhile, a copy is changed. That happens when the next batch runs beside an attempt that
 * does not count, and when a leaving executor hands over what the open batch has committed so far.
 *
 * @param account
 *   counts the heap bytes of the content, and of earlier content that tasks still hold
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

  /**
   * Number and bytes of the deltas in the content that no snapshot has. `counting` grows whenever both are set anew.
   */
  private var deltas = 0
  private var deltaBytes = 0L
  private var counting = 0L
  private var failedSnapshots = 0

  /**
   * The delta that was folded last. It is kept until batch `keptUntil`, for executors whose replicas lack only that.
   */
  private var last: Option[(UUID, Prepared)] = None
  private var keptUntil = -1L

  /** Set while content is on its way to this executor. */
  @volatile private var arrival: CountDownLatch = _

  private def locked[A](body: => A): A = {
    lock.lock()
    try body
    finally lock.unlock()
  }

  /** Announces content that is on its way here. `expected` must be called when it has arrived or has failed to. */
  def expect(): Unit = locked { if (arrival == null) arrival = new CountDownLatch(1) }

  /** Ends the wait for content that was announced. */
  def expected(): Unit = locked {
    if (arrival != null) arrival.countDown()
    arrival = null
  }

  /** Waits for content that is on its way here, if there is any, at most until `System.nanoTime` reaches `untilNs`. */
  def awaitArrival(untilNs: Long): Unit = {
    val announced = arrival
    if (announced != null) announced.await(untilNs - System.nanoTime(), TimeUnit.NANOSECONDS): Unit
  }

  /**
   * Opens the shard's content at a lineage. It does not change until the caller closes the result.
   *
   * @param wanted
   *   lineage that the batch starts from
   * @param batchId
   *   the batch
   * @param load
   *   rebuilds the content; called only if memory does not have it
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

  private def letGo(held: Content): Unit = locked {
    held.readers -= 1
    if (held.readers == 0) retire(held, 0L)
  }

  /** Brings the content to a lineage, which must not be [[ShardRefs.NeverWritten]]. */
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

  /** Applies a delta. The content has no lineage until it is applied completely. */
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

  /** Counts the bytes of earlier content that tasks still hold. */
  private def retire(earlier: Content, bytes: Long): Unit = {
    val more = bytes - earlier.retiredBytes
    earlier.retiredBytes = bytes
    retired += more
    account.add(more)
  }

  private def countAnew(changes: Int, bytes: Long): Unit = {
    deltas = changes
    deltaBytes = bytes
    counting += 1
  }

  /**
   * Opens an empty shard, which is not shared with other tasks. If a pin slot now has another hash than before, one
   * task begins with nothing while another one brings the content to what the previous batch has prepared.
   */
  private def begin(): Opened = {
    if (at != ShardRefs.NeverWritten) reset()
    new Opened(new ShardState, InMemory, () => ())
  }

  /**
   * Like `open`, for a task that takes keys of this shard into another one. None if memory does not have the lineage.
   */
  def openIfHeld(wanted: UUID, batchId: Long): Option[Opened] = locked {
    Option.when(has(wanted))(open(wanted, batchId)(throw new IllegalStateException("not in memory")))
  }

  /** Whether memory has content at the lineage, or the content and the delta that lead to it. */
  def has(wanted: UUID): Boolean = locked {
    at == wanted || wanted == ShardRefs.NeverWritten || prepared.get(wanted).exists(p => leadsOn(p.base))
  }

  /**
   * Whether a delta on `base` can be applied: always if it starts from an empty shard, whatever is here; see `begin`.
   */
  private def leadsOn(base: UUID): Boolean = base == at || base == ShardRefs.NeverWritten

  /** Keeps the delta that an attempt which started from `base` committed as `lineage`, until it is known to count. */
  def prepare(lineage: UUID, base: UUID, changes: SharedBytes, offset: Int, length: Int): Unit = locked {
    if (leadsOn(base)) {
      changes.retain()
      prepared.put(lineage, new Prepared(base, changes, offset, length)).foreach(_.changes.release())
      if (prepared.size > MaxPrepared) prepared.remove(prepared.head._1).foreach(_.changes.release())
    }
  }

  /**
   * Takes content that another executor sends. Tasks of the open batch keep what they hold and what they need to
   * commit: while they hold the content, a prepared delta that leads to the lineage is applied only when a batch opens
   * the shard.
   *
   * @param version
   *   version of the store that the content has
   * @param loaded
   *   the content; evaluated only if memory does not have the lineage
   * @return
   *   whether memory has the lineage now; false if a later batch has opened the shard here
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
   * Brings the content from one lineage to a later one by change sets, oldest first.
   *
   * @return
   *   whether the content was at lineage `from`; else nothing is done
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

  /** Drops all content. The next task that opens the shard loads it. */
  def forget(): Unit = locked {
    reset()
    count()
  }

  /** Drops the content if no batch from `batchId` on has opened it here, unless it is in use now. Does not wait. */
  def forgetUnlessOpenedSince(batchId: Long): Unit =
    if (lock.tryLock()) {
      try if (openedFor < batchId) forget()
      finally lock.unlock()
    }

  /** The changes since the last snapshot; None if there are none. */
  def snapshotCandidate: Option[SnapshotPlan.Candidate] = locked {
    Option.when(deltas > 0)(
      SnapshotPlan.Candidate(shard, deltas, deltaBytes, counted, failedSnapshots)
    )
  }

  /**
   * The content at a lineage for another executor, or the delta that leads to it from lineage `have`, which that
   * executor has. None if memory does not have the lineage, or if the shard is being loaded. The content stays here as
   * well.
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
    try bring(wanted, throw new IllegalStateException("not in memory"))
    finally count()
    last.collect { case (lineage, p) if lineage == wanted && p.base == have => p }
      .fold[Given](GivenImage(content.state.image, deltas, deltaBytes))(changesOf)
  }

  /** Image of a copy with the delta applied, because the tasks that hold the content may still commit on top of it. */
  private def imageOfCopy(p: Prepared): Given = {
    val (copy, changes, bytes) =
      if (p.base == at) (content.state.copied, deltas, deltaBytes) else (new ShardState, 0, 0L)
    copy(p.changes.array, p.offset, p.length)
    GivenImage(copy.image, changes + 1, bytes + p.length)
  }

  private def changesOf(p: Prepared): Given = GivenChanges(p.changes.array, p.offset, p.length)

  /** The content for a snapshot; None if it has no lineage or was never written. */
  def image: Option[SnapshotImage] = locked {
    Option.when(at != ShardSlot.Unknown && at != ShardRefs.NeverWritten) {
      new SnapshotImage(content.state.image, openedFor, at, counting, deltas, deltaBytes)
    }
  }

  /** Called when a snapshot is durable. Its changes are not counted any more; changes that came since are. */
  def snapshotted(image: SnapshotImage): Unit = locked {
    failedSnapshots = 0
    if (image.counting == counting) {
      deltas -= image.deltas
      deltaBytes -= image.deltaBytes
    }
  }

  /** Called when a snapshot could not be written. */
  def snapshotFailed(): Unit = locked(failedSnapshots += 1)

  /** Heap bytes of the content when they were counted last. Does not wait. */
  def countedBytes: Long = counted

  /** Heap bytes of the content, counted now. */
  def contentBytes: Long = locked(content.state.memoryBytes)

  /** Heap bytes of earlier content that tasks still hold. */
  def retiredBytes: Long = locked(retired)

  /** Deltas that attempts have prepared. */
  def preparedChanges: Iterable[SharedBytes] = locked(prepared.values.map(_.changes).toVector)

  /** Whether there is content, even if it is empty. */
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

  /** Lineage of content to which a delta is only partly applied. No commit has this UUID. */
  private val Unknown = new UUID(-1L, -1L)

  /** Number of attempts of one batch whose deltas are kept. Older attempts certainly do not count. */
  private val MaxPrepared = 4

  /**
   * Longest wait for the slot's lock: an executor that asks can use the checkpoint, and must not wait while it hangs.
   */
  private val GiveLimitMs = 1000L

  /**
   * Batches for which a folded delta is kept: an executor that asks in every batch may ask before or after tasks run.
   */
  private val KeptBatches = 2

  /** Content that was loaded, with the number and bytes of the deltas that were applied to its snapshot. */
  final case class Loaded(content: ShardState, deltas: Int, deltaBytes: Long)

  /** What another executor gets of a shard. */
  sealed trait Given

  /** The whole content, with the number and bytes of its deltas since the last snapshot. */
  final case class GivenImage(image: ShardImage, deltas: Int, deltaBytes: Long) extends Given

  /** A delta: a part of an array that does not change. */
  final case class GivenChanges(array: Array[Byte], offset: Int, length: Int) extends Given

  /**
   * Content that a task holds.
   *
   * @param content
   *   the content, which does not change until this object is closed
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
   *   version of the store
   * @param deltas
   *   number of deltas in the content that no earlier snapshot has
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
   * The content that a slot's readers see.
   *
   * @param state
   *   the state, which never changes while there are readers
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
