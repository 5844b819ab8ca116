package org.apache.spark.sql.penstock.state

import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, Executor}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.{SnapshotEntry, SnapshotsWritten}
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.state.format._

/**
 * Writes snapshots of one query's shards, one file after another. A shard whose snapshot fails does not block the
 * others.
 *
 * @param threads
 *   threads that write; one of them at a time
 * @param tell
 *   reports a file to the driver; throws if the driver rejects it
 * @param metrics
 *   counts files
 */
final class SnapshotWriter(threads: Executor, tell: SnapshotsWritten => Unit, metrics: ExecutorMetrics)
    extends Logging {
  import SnapshotWriter._

  private val queue = new ConcurrentLinkedQueue[Request]()
  private val waiting = ConcurrentHashMap.newKeySet[ShardSlot]()
  private val running = new AtomicBoolean(false)

  /**
   * Requests a snapshot of a shard as it is when it is written. Ignored if a request for the shard is waiting already.
   */
  def request(r: Request): Unit =
    if (waiting.add(r.slot)) {
      queue.add(r)
      start()
    }

  /** Forgets the requests that are waiting. */
  def clear(): Unit = queue.clear()

  private def start(): Unit = if (running.compareAndSet(false, true)) threads.execute { () =>
    try Iterator.continually(queue.poll()).takeWhile(_ != null).grouped(MaxRequests).foreach(write)
    finally {
      running.set(false)
      if (!queue.isEmpty) start()
    }
  }

  private def write(requests: Seq[Request]): Unit =
    try requests.groupBy(_.runId).values.foreach(ofRun => new Files(ofRun).write())
    catch {
      case e: Throwable =>
        failed("Snapshots could not be written", e)
        if (!NonFatal(e)) throw e
    } finally requests.foreach(r => waiting.remove(r.slot))

  private def failed(problem: String, e: Throwable): Unit = {
    metrics.snapshotsFailed()
    logWarning(s"$problem. No state is lost. Until the next snapshot, loading the shard has to read more changes", e)
  }

  /** The snapshot files of shards of one run. */
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

    /** Adds a shard to the file. If that fails, the bytes that it has written are removed again. */
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
      val written = entries.toSeq
      try {
        // A file is retained for as long as its newest version.
        val file = Container.Snapshots(written.map(_._1.version).max, UUID.randomUUID())
        val body = SectionTable.encode(written.map(_._1.section))
        directory.write(file.path, FileFormat.Kind.Snapshots, body, payload.array, payload.size)
        val payloadAt = FileFormat.HeaderBytes.toLong + body.length
        tell(SnapshotsWritten(requests.head.runId, file, payloadAt, written.map(_._1)))
        written.foreach { case (_, slot, image) => slot.snapshotted(image) }
        metrics.snapshotsWritten(written.size, payload.size.toLong)
      } catch {
        case NonFatal(e) =>
          written.foreach(_._2.snapshotFailed())
          failed(s"A file of ${written.size} snapshots was not written, or the driver rejected it", e)
      } finally {
        entries.clear()
        payload.clear()
      }
    }
  }
}

object SnapshotWriter {

  /** A file is written when it has more bytes than this. */
  private val FileBytes = 16 << 20

  /** Most requests that share files. */
  private val MaxRequests = 256

  /** Size limit of a file: a section, like an array of the JVM, has less than 2 GiB. */
  private val MaxFileBytes = FileFormat.MaxBytes.toLong - (1L << 20)

  /**
   * A shard that is to be written.
   *
   * @param directory
   *   state directory of the shard's query
   */
  final class Request(val runId: UUID, val directory: StateDirectory, val store: StoreKey, val slot: ShardSlot)

  private def tooLarge(r: Request, bytes: Long) = new PenstockException(
    "PENSTOCK_SHARD_TOO_LARGE",
    s"shard ${r.slot.shard} of store ${r.store.storeName} of operator ${r.store.operatorId} has $bytes bytes, but a " +
      s"snapshot can have at most $MaxFileBytes. Without a snapshot, a start of the query has to read all changes of " +
      "the shard. Use a new checkpoint location with a larger spark.penstock.shards"
  )
}
