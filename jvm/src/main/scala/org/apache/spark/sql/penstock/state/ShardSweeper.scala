package org.apache.spark.sql.penstock.state

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.util.ThreadUtils

import io.penstock.context.Component

/**
 * Periodically drops shards of queries that have ended.
 *
 * @param stores
 *   the shards of this executor
 * @param everyMs
 *   time between two sweeps, and time for which shards must be unused before they are dropped
 * @param live
 *   returns those of the given queries that a run works on
 * @param dropped
 *   called with each query whose shards were dropped
 */
final class ShardSweeper(
    stores: ShardStores,
    everyMs: Long,
    live: Set[String] => Set[String],
    dropped: String => Unit = _ => ()
) extends Component
    with Logging {
  private val thread = ThreadUtils.newDaemonSingleThreadScheduledExecutor("penstock-sweep")
  thread.scheduleWithFixedDelay(() => sweep(), everyMs, everyMs, TimeUnit.MILLISECONDS)

  private def sweep(): Unit =
    try {
      val idle = stores.idle(TimeUnit.MILLISECONDS.toNanos(everyMs))
      if (idle.nonEmpty) (idle -- live(idle)).foreach { root =>
        stores.drop(root)
        dropped(root)
      }
    } catch {
      case NonFatal(e) =>
        logInfo(s"Penstock: shards of queries that have ended could not be dropped. This is tried again later: $e")
    }

  override def held: Map[String, Long] = Map("threads" -> (if (thread.isTerminated) 0L else 1L))

  override def close(): Unit = thread.shutdownNow(): Unit
}
