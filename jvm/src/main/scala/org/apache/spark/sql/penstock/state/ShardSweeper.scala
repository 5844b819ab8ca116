package org.apache.spark.sql.penstock.state

import java.util.concurrent.{ScheduledExecutorService, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.StateCommits
import org.apache.spark.util.ThreadUtils

/**
 * Periodically drops shards of queries that have ended.
 *
 * @param everyMs
 *   time between two sweeps, and time for which shards must be unused before they are dropped
 * @param live
 *   returns those of the given queries that a run works on
 */
final class ShardSweeper(everyMs: Long, live: Set[String] => Set[String]) extends Logging {
  private lazy val thread: ScheduledExecutorService = {
    val t = ThreadUtils.newDaemonSingleThreadScheduledExecutor("penstock-sweep")
    t.scheduleWithFixedDelay(() => sweep(), everyMs, everyMs, TimeUnit.MILLISECONDS)
    t
  }

  /** Starts the sweeper. Idempotent. */
  def start(): Unit = thread: Unit

  def stop(): Unit = thread.shutdownNow(): Unit

  private def sweep(): Unit =
    try {
      val idle = ShardStores.idle(TimeUnit.MILLISECONDS.toNanos(everyMs))
      if (idle.nonEmpty) (idle -- live(idle)).foreach { root =>
        ShardStores.drop(root)
        Snapshots.forget(root)
      }
    } catch {
      case NonFatal(e) =>
        logInfo(s"Penstock: shards of queries that have ended could not be dropped. This is tried again later: $e")
    }
}

object ShardSweeper {
  private val EveryMs = 30000L

  /** The sweeper of this JVM. */
  val own = new ShardSweeper(EveryMs, idle => if (SparkEnv.get == null) idle else StateCommits.live(idle).keySet)
}
