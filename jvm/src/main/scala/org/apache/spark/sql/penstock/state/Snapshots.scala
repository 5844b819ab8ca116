package org.apache.spark.sql.penstock.state

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.util.ThreadUtils

/**
 * Snapshots are written in the background, of each query by a thread of its own: where the file system of one hangs, the
 * others go on. A snapshot that fails or comes too late costs a longer chain of changes and nothing else.
 */
object Snapshots {
  private val writers = new ConcurrentHashMap[String, SnapshotWriter]()
  private lazy val threads = ThreadUtils.newDaemonCachedThreadPool("penstock-snapshots")

  /** Asks for a snapshot of a shard. */
  def request(r: SnapshotWriter.Request): Unit =
    writers.computeIfAbsent(r.directory.stateRoot, _ => new SnapshotWriter(threads)).request(r)

  /** Forgets a query that has ended. */
  def forget(stateRoot: String): Unit = writers.remove(stateRoot): Unit
}
