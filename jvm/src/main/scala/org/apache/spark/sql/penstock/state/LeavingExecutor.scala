package org.apache.spark.sql.penstock.state

import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.{CommitClient, HandOver, ShardsHandedOver}
import org.apache.spark.sql.penstock.lease.ThisExecutor

import io.penstock.context.Component
import io.penstock.sidecars.transfer.{ExecutorTransfer, Outcome}
import io.penstock.state.format.ShardOffer

/**
 * An executor that ends while the application goes on (decommissioned, released, or stopped by its cluster) hands the
 * shards in its memory over to other executors, so that the next batch need not read them from the checkpoint. A shard
 * that is not handed over only costs time.
 *
 * The last component of the executor's context: it is closed while all others are open.
 *
 * @param limitMs
 *   time limit; with 0, nothing is handed over
 * @param transfer
 *   the way to other executors
 * @param driver
 *   the way to the driver
 */
final class LeavingExecutor(limitMs: Int, transfer: ExecutorTransfer, driver: CommitClient)
    extends Component
    with Logging {
  override def held: Map[String, Long] = Map.empty

  /** Hands over as many shards as can be handed over in time. The shards are still here then. */
  override def close(): Unit =
    if (limitMs > 0 && transfer.addresses.nonEmpty) {
      val start = System.nanoTime()
      def leftMs = limitMs - NANOSECONDS.toMillis(System.nanoTime() - start)
      try {
        val executor = ThisExecutor.location
        // The driver has half of the time, so that some is left to send shards after a late answer. When the whole
        // application ends and the driver is gone, the question fails at once.
        val all = driver.handOver(executor, math.max(1L, limitMs / 2L))
        val handed = all.map(h => if (leftMs > 0) offer(h, executor, leftMs.toInt) else 0).sum
        if (all.nonEmpty) {
          val ms = NANOSECONDS.toMillis(System.nanoTime() - start)
          val offered = all.map(h => ShardOffer.decode(h.offer).shards.size).sum
          logInfo(
            s"Penstock: $executor ends and has handed $handed of $offered shards over to other executors in $ms ms"
          )
        }
      } catch {
        case NonFatal(e) => logInfo(s"Penstock: this executor could not hand its shards over: $e")
      }
    }

  private def offer(h: HandOver, executor: String, limitMs: Int): Int =
    transfer.ask(h.to.addresses, h.offer, limitMs)((in, _) => ShardOffer.decodeTaken(in.takeAll())) match {
      case Outcome.Here(shards) =>
        driver.tell(ShardsHandedOver(h.runId, h.region, executor, h.to.executor, shards.toArray))
        shards.size
      case other =>
        logWarning(
          s"Penstock: ${h.to.executor} did not take the shards that it was offered: $other. They are read from the " +
            "checkpoint instead"
        )
        0
    }
}
