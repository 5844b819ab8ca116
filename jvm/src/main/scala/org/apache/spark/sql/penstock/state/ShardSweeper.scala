package org.apache.spark.sql.penstock.state

import java.util.concurrent.{ScheduledExecutorService, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.StateCommits
import org.apache.spark.util.ThreadUtils

/**
 * Drops shards of queries that have ended, now and then.
 *
 * @param live
 *   of some queries those that a run works on
 */
final class ShardSweeper(everyMs: Long, live: Set[String] => Set[String]) extends Logging {
  private lazy val thread: ScheduledExecutorService = {
    val t = ThreadUtils.newDaemonSingleThreadScheduledExecutor("penstock-sweep")
    t.scheduleWithFixedDelay(() => sweep(), everyMs, everyMs, TimeUnit.MILLISECONDS)
    t
  }

  /** Starts it, once. */
  def start(): Unit = thread: Unit

  def stop(): Unit = thread.shutdownNow(): Unit

  private def sweep(): Unit =
    try {
      val idle = ShardStores.idle(TimeUnit.MILLISECONDS.toNanos(everyMs))
      if (idle.nonEmpty) (idle -- live(idle)).foreach { root =>
        ShardStores.drop(root)
        Snapshots.forget(root)
      }
    } catch { case NonFatal(e) => logInfo(s"Penstock: shards of queries that have ended stay for now: $e") }
}

object ShardSweeper {
  private val EveryMs = 30000L

  /** Of this JVM. */
  val own = new ShardSweeper(EveryMs, idle => if (SparkEnv.get == null) idle else StateCommits.live(idle).keySet)
}
