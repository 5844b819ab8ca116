package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.sql.penstock.lease.RegionLease
import org.apache.spark.sql.penstock.state.StateDirectory
import org.apache.spark.sql.penstock.telemetry.TaskMeter
import org.apache.spark.{SparkEnv, TaskContext}

import io.penstock.sidecars.transfer.ExecutorTransfer
import io.penstock.state.format._
import io.penstock.telemetry.StateLoad

/**
 * The commits of one task attempt: its stores are written together, in one changelog file or inline with the driver's
 * manifest, when the last of them commits.
 *
 * @param views
 *   how many leases the task has, one after the other: it opens each store once in each
 */
final class TaskCommits private (
    region: RegionLease,
    directory: StateDirectory,
    attempt: TaskAttempt,
    inlineBytesPerBatch: Long,
    views: Int
) {

  /** Name of this attempt's commit. */
  val lineage: UUID = UUID.randomUUID()

  private var payload: ByteSink = _
  private val stores = mutable.ArrayBuffer[StoreCommit]()
  private val expected = region.spec.stores.size * views

  /**
   * Adds one store.
   *
   * @param state
   *   of each shard
   * @param loadNs
   *   time in which they were brought to this executor
   * @param brought
   *   how many, by transport or from the checkpoint
   * @param bytes
   *   handed over: its content stays as it is, but more may be written behind it
   * @param sections
   *   offsets from the start of `bytes`
   * @return
   *   bytes written so far by the attempt
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
    // Copied only where an operator has several stores: megabytes in every batch.
    if (payload == null) payload = bytes
    else payload.putBytes(bytes.array, org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET, bytes.size)
    val shifted = sections.iterator.map(s => s.copy(offset = s.offset + at)).toArray
    stores += StoreCommit(store, shards, state, loadNs, brought, shifted)
    if (stores.size >= expected) flush()
  }

  /** Writes and tells the driver what is there and was not told yet. */
  def flush(): Unit = synchronized {
    if (stores.nonEmpty) {
      val told = stores.toSeq
      val inline = payload.size <= inlineBudget(told)
      val payloadAt =
        if (inline) 0L
        else {
          val body = SectionTable.encode(told.flatMap(_.sections))
          val file = Container.Changelog(region.batchId, lineage)
          directory.write(file.path, FileFormat.Kind.Changelog, body, payload.array, payload.size)
          FileFormat.HeaderBytes.toLong + body.length
        }
      val message = TaskCommitted(
        region.runId,
        region.batchId,
        attempt,
        TaskCommits.here,
        ExecutorTransfer.addresses,
        lineage,
        if (inline) payload.toByteArray else null,
        payloadAt,
        told
      )
      TaskMeter.waiting(TaskContext.get())(StateCommits.tell(message))
      stores.clear()
      payload = null
      // Below a coalesce one task runs several views in turn: each is a commit of its own.
      TaskCommits.attempts.values.remove(this): Unit
    }
  }

  /** The attempt's share of what the driver is willing to write, by shards. */
  private def inlineBudget(told: Seq[StoreCommit]): Long = {
    val shards = told.iterator.filter(_.store == told.head.store).map(_.shards.length).sum
    inlineBytesPerBatch * shards / region.layout.shards
  }
}

object TaskCommits {

  /** By context: attempts of one application have other numbers, those of two in one JVM may have the same. */
  private val attempts = new ConcurrentHashMap[TaskContext, TaskCommits]()
  private val viewsOf = new ConcurrentHashMap[TaskContext, Int]()

  /** What the running task commits in its next `views` leases is one commit. */
  def together(context: TaskContext, views: Int): Unit = {
    if (!viewsOf.containsKey(context)) context.addTaskCompletionListener[Unit](c => viewsOf.remove(c): Unit)
    viewsOf.put(context, views): Unit
  }

  /**
   * The running attempt's commits.
   *
   * @param inlineBytesPerBatch
   *   bytes of changes that the driver takes with a batch, shared by shards
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
          // A store that the plan has and the task never opened must not hold back what the others committed.
          if (!c.isFailed() && !c.isInterrupted()) commits.flush()
        }
        commits
      }
    )
  }

  /** This executor, as a task location. */
  private[penstock] def here: String = {
    val id = SparkEnv.get.blockManager.blockManagerId
    ExecutorCacheTaskLocation(id.host, id.executorId).toString
  }
}
