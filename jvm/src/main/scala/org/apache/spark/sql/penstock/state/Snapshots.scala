package org.apache.spark.sql.penstock.state

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.penstock.commit.SnapshotsWritten
import org.apache.spark.util.ThreadUtils

import io.penstock.context.{Component, ComponentKey, ExecutorContext}
import io.penstock.process.DaemonPool

/**
 * Writes snapshots in the background. Each query uses at most one thread, so a file system that hangs for one does not
 * stop the others. If a snapshot fails or is late, loading the shard has to read more changes, but no state is lost.
 *
 * @param tell
 *   reports a file to the driver; throws if the driver rejects it
 * @param metrics
 *   counts files
 */
final class Snapshots(tell: SnapshotsWritten => Unit, metrics: ExecutorMetrics) extends Component {
  private val writers = new ConcurrentHashMap[String, SnapshotWriter]()
  private val threads = new DaemonPool(ThreadUtils.newDaemonCachedThreadPool("penstock-snapshots"))

  /** Requests a snapshot of a shard. */
  def request(r: SnapshotWriter.Request): Unit =
    writers.computeIfAbsent(r.directory.stateRoot, _ => new SnapshotWriter(threads, tell, metrics)).request(r)

  /** Removes the writer of a query that has ended. */
  def forget(stateRoot: String): Unit = writers.remove(stateRoot): Unit

  override def held: Map[String, Long] = Map("writers" -> writers.size.toLong, "threads" -> threads.size.toLong)

  /** Lets the file that is being written finish, and forgets all requests. */
  override def close(): Unit = {
    writers.values.forEach(_.clear())
    writers.clear()
    threads.close()
  }
}

object Snapshots extends ComponentKey[Snapshots](ExecutorContext)
