package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.penstock.lease.{RegionLease, TaskAttempt, ThisExecutor}
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.sql.penstock.telemetry.TaskMeter

import io.penstock.context.Component
import io.penstock.sidecars.transfer.ExecutorTransfer
import io.penstock.state.format._
import io.penstock.telemetry.StateLoad

/**
 * The commits of one task attempt. Its stores are written together when the last of them commits: in one changelog
 * file, or inline in the manifest that the driver writes.
 *
 * @param inlineBytesPerBatch
 *   bytes of changes that the driver accepts inline in one batch
 * @param views
 *   number of leases that the task has, one after the other. It opens each store once in each of them
 */
final class TaskCommits private (
    region: RegionLease,
    directory: StateDirectory,
    attempt: TaskAttempt,
    inlineBytesPerBatch: Long,
    views: Int
) {

  /** UUID of this attempt's commit. */
  val lineage: UUID = UUID.randomUUID()

  private var payload: ByteSink = _
  private val stores = mutable.ArrayBuffer[StoreCommit]()
  private val expected = region.spec.stores.size * views

  /**
   * Adds the commit of one store. Writes and reports all stores if it is the last one.
   *
   * @param state
   *   load of each shard
   * @param loadNs
   *   time that was spent on bringing shards to this executor
   * @param brought
   *   number of shards that were brought, by transport or from the checkpoint
   * @param bytes
   *   change sets of the store. The caller must not write to it any more; bytes of other stores may be appended to it
   * @param sections
   *   sections of the changed shards; offsets are relative to the start of `bytes`
   */
  def add(
      store: StoreKey,
      shards: Array[Int],
      state: StateLoad,
      loadNs: Long,
      brought: Map[String, Int],
      bytes: ByteSink,
      sections: Seq[Section]
  ): Unit = synchronized {
    val at = if (payload == null) 0 else payload.size
    // The first store's bytes are not copied: they may be megabytes in every batch.
    if (payload == null) payload = bytes
    else payload.putBytes(bytes.array, org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET, bytes.size)
    val shifted = sections.iterator.map(s => s.copy(offset = s.offset + at)).toArray
    stores += StoreCommit(store, shards, state, loadNs, brought, shifted)
    if (stores.size >= expected) flush()
  }

  /** Writes the stores that were added and not reported yet, and reports them to the driver. */
  def flush(): Unit = synchronized {
    if (stores.nonEmpty) {
      val pending = stores.toSeq
      val inline = payload.size <= inlineBudget(pending)
      val payloadAt =
        if (inline) 0L
        else {
          val body = SectionTable.encode(pending.flatMap(_.sections))
          val file = Container.Changelog(region.batchId, lineage)
          directory.write(file.path, FileFormat.Kind.Changelog, body, payload.array, payload.size)
          FileFormat.HeaderBytes.toLong + body.length
        }
      val message = TaskCommitted(
        region.runId,
        region.batchId,
        attempt,
        ThisExecutor.location,
        ExecutorTransfer.current.addresses,
        lineage,
        if (inline) payload.toByteArray else null,
        payloadAt,
        pending
      )
      TaskMeter.waiting(TaskContext.get())(CommitClient.current.tell(message))
      stores.clear()
      payload = null
      // Below a coalesce, one task runs several views one after another. Each of them is a separate commit.
      TaskCommits.attempts.values.remove(this): Unit
    }
  }

  /** The attempt's share of the bytes that the driver accepts inline, in proportion to its shards. */
  private def inlineBudget(pending: Seq[StoreCommit]): Long = {
    val shards = pending.iterator.filter(_.store == pending.head.store).map(_.shards.length).sum
    inlineBytesPerBatch * shards / region.layout.shards
  }
}

/**
 * The commits of the tasks that run in this JVM. An object, because an entry belongs to its task, which removes it at its
 * end. The executor context owns it, and removes what tasks have left that outlive the application.
 */
object TaskCommits extends Component {

  /**
   * Keyed by context, because attempt ids are unique only within an application, and a JVM may run two applications.
   */
  private val attempts = new ConcurrentHashMap[TaskContext, TaskCommits]()
  private val viewsOf = new ConcurrentHashMap[TaskContext, Int]()

  /** Makes the next `views` leases of the running task one commit. */
  def together(context: TaskContext, views: Int): Unit = {
    if (!viewsOf.containsKey(context)) context.addTaskCompletionListener[Unit](c => viewsOf.remove(c): Unit)
    viewsOf.put(context, views): Unit
  }

  /**
   * The commits of the running attempt.
   *
   * @param inlineBytesPerBatch
   *   bytes of changes that the driver accepts inline in one batch, divided among tasks by their shards
   */
  def current(region: RegionLease, directory: StateDirectory, inlineBytesPerBatch: Long): TaskCommits = {
    val context = TaskContext.get()
    attempts.computeIfAbsent(
      context,
      { _ =>
        val views = viewsOf.getOrDefault(context, 1)
        val commits = new TaskCommits(region, directory, TaskAttempt.of(context), inlineBytesPerBatch, views)
        context.addTaskCompletionListener[Unit] { c =>
          attempts.remove(context, commits)
          // A planned store that the task never opened must not hold back the commits of its other stores.
          if (!c.isFailed() && !c.isInterrupted()) commits.flush()
        }
        commits
      }
    )
  }

  override def held: Map[String, Long] =
    Map("attempts" -> attempts.size.toLong, "numbers of leases" -> viewsOf.size.toLong)

  override def close(): Unit = {
    attempts.clear()
    viewsOf.clear()
  }
}
