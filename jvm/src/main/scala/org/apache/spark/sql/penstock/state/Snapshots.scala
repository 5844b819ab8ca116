package org.apache.spark.sql.penstock.state

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.util.ThreadUtils

/**
 * Writes snapshots in the background. Each query uses at most one thread, so a file system that hangs for one does not
 * stop the others. If a snapshot fails or is late, loading the shard has to read more changes, but no state is lost.
 */
object Snapshots {
  private val writers = new ConcurrentHashMap[String, SnapshotWriter]()
  private lazy val threads = ThreadUtils.newDaemonCachedThreadPool("penstock-snapshots")

  /** Requests a snapshot of a shard. */
  def request(r: SnapshotWriter.Request): Unit =
    writers.computeIfAbsent(r.directory.stateRoot, _ => new SnapshotWriter(threads)).request(r)

  /** Removes the writer of a query that has ended. */
  def forget(stateRoot: String): Unit = writers.remove(stateRoot): Unit
}
