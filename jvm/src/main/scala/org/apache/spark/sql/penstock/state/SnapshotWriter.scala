package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, ExecutorService}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.{SnapshotEntry, SnapshotsWritten, StateCommits}

import io.penstock.errors.PenstockException
import io.penstock.state.format._

/**
 * Writes snapshots of one query's shards, one file after the other. A shard whose snapshot fails keeps no other waiting.
 *
 * @param threads
 *   one of them at a time writes
 * @param tell
 *   tells the driver of a file; throws where the driver does not take it
 */
final class SnapshotWriter(threads: ExecutorService, tell: SnapshotsWritten => Unit = StateCommits.tell)
    extends Logging {
  import SnapshotWriter._

  private val queue = new ConcurrentLinkedQueue[Request]()
  private val waiting = ConcurrentHashMap.newKeySet[ShardSlot]()
  private val running = new AtomicBoolean(false)

  /** Asks for a snapshot of a shard as it is when its turn comes; nothing where one is on its way. */
  def request(r: Request): Unit =
    if (waiting.add(r.slot)) {
      queue.add(r)
      start()
    }

  private def start(): Unit = if (running.compareAndSet(false, true)) threads.execute { () =>
    try Iterator.continually(queue.poll()).takeWhile(_ != null).grouped(MaxRequests).foreach(write)
    finally {
      running.set(false)
      if (!queue.isEmpty) start()
    }
  }

  private def write(requests: Seq[Request]): Unit =
    try requests.groupBy(_.runId).values.foreach(of => new Files(of).write())
    catch {
      case e: Throwable =>
        failed("Snapshots failed", e)
        if (!NonFatal(e)) throw e
    } finally requests.foreach(r => waiting.remove(r.slot))

  private def failed(what: String, e: Throwable): Unit = {
    ExecutorMetrics.snapshotsFailed()
    logWarning(s"$what. The chain of changes is longer for now, and nothing else", e)
  }

  /** The files of some shards of one run. */
  final private class Files(requests: Seq[Request]) {
    private val directory = requests.head.directory
    private val payload = new ByteSink(1 << 16)
    private val entries = mutable.ArrayBuffer[(SnapshotEntry, ShardSlot, ShardSlot.SnapshotImage)]()

    def write(): Unit = {
      requests.foreach { r =>
        add(r)
        if (payload.size > FileBytes) flush()
      }
      flush()
    }

    /** What a shard has written when it fails is taken back. */
    private def add(r: Request): Unit = {
      val at = payload.size
      try r.slot.image.foreach { image =>
          if (image.image.bytes + at > MaxFileBytes && at > 0) {
            flush()
            add(r)
          } else {
            if (image.image.bytes > MaxFileBytes) throw tooLarge(r, image.image.bytes)
            image.image.writeTo(payload)
            val length = payload.size - at
            val section = Section(r.store, r.slot.shard, at, length, FileFormat.crc(payload.array, at, length))
            entries += ((SnapshotEntry(image.version, image.lineage, section), r.slot, image))
          }
        }
      catch {
        case e: Throwable =>
          payload.truncate(math.min(at, payload.size))
          r.slot.snapshotFailed()
          failed(s"The snapshot of shard ${r.slot.shard} of operator ${r.store.operatorId} failed", e)
          if (!NonFatal(e) && !e.isInstanceOf[OutOfMemoryError]) throw e
      }
    }

    private def flush(): Unit = if (entries.nonEmpty) {
      val of = entries.toSeq
      try {
        // A file is kept for as long as the newest version in it would be.
        val file = Container.Snapshots(of.map(_._1.version).max, UUID.randomUUID())
        val body = SectionTable.encode(of.map(_._1.section))
        directory.write(file.path, FileFormat.Kind.Snapshots, body, payload.array, payload.size)
        tell(SnapshotsWritten(requests.head.runId, file, FileFormat.HeaderBytes.toLong + body.length, of.map(_._1)))
        of.foreach { case (_, slot, image) => slot.snapshotted(image) }
        ExecutorMetrics.snapshotsWritten(of.size, payload.size.toLong)
      } catch {
        case NonFatal(e) =>
          of.foreach(_._2.snapshotFailed())
          failed(s"A file of ${of.size} snapshots failed", e)
      } finally {
        entries.clear()
        payload.clear()
      }
    }
  }
}

object SnapshotWriter {

  /** A file is written when it has more than this. */
  private val FileBytes = 16 << 20

  /** Requests that share files. */
  private val MaxRequests = 256

  /** No file is larger: a section, and an array of the JVM, has less than 2 GiB. */
  private val MaxFileBytes = FileFormat.MaxBytes.toLong - (1L << 20)

  /**
   * A shard to be written.
   *
   * @param directory
   *   of its query
   */
  final class Request(val runId: UUID, val directory: StateDirectory, val store: StoreKey, val slot: ShardSlot)

  private def tooLarge(r: Request, bytes: Long) = new PenstockException(
    "PENSTOCK_SHARD_TOO_LARGE",
    s"shard ${r.slot.shard} of store ${r.store.storeName} of operator ${r.store.operatorId} has $bytes bytes, and a " +
      s"snapshot at most $MaxFileBytes: a start has to read all changes of the shard. Start a new checkpoint with a larger " +
      "spark.penstock.shards"
  )
}
