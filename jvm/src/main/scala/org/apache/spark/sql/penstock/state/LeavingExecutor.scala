package org.apache.spark.sql.penstock.state

import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.commit.{HandOver, ShardsHandedOver, StateCommits, TaskCommits}

import io.penstock.sidecars.transfer.{ExecutorTransfer, Outcome}
import io.penstock.state.format.ShardOffer

/**
 * An executor that ends while the application goes on (decommissioned, given back, told to by its cluster) hands the shards in
 * its memory to others, so that the next batch need not read them from the checkpoint. What is not handed over costs time, and
 * nothing else.
 */
object LeavingExecutor extends Logging {

  /** In which the driver answers: where the application ends it may be gone. */
  private val AskMs = 3000L

  /**
   * Hands over what can be handed over in time.
   *
   * @param limitMs
   *   0: nothing
   */
  def handOver(limitMs: Int): Unit =
    if (limitMs > 0 && ExecutorTransfer.addresses.nonEmpty) {
      val start = System.nanoTime()
      def leftMs = limitMs - NANOSECONDS.toMillis(System.nanoTime() - start)
      try {
        val executor = TaskCommits.here
        val all = StateCommits.handOver(executor, math.min(AskMs, limitMs.toLong))
        val handed = all.map(h => if (leftMs > 0) offer(h, executor, leftMs.toInt) else 0).sum
        if (all.nonEmpty) {
          val ms = NANOSECONDS.toMillis(System.nanoTime() - start)
          logInfo(s"Penstock: $executor ends, and has handed $handed shards to others in $ms ms")
        }
      } catch {
        case NonFatal(e) => logInfo(s"Penstock: this executor hands no shards over: $e")
      }
    }

  private def offer(h: HandOver, executor: String, limitMs: Int): Int =
    ExecutorTransfer.ask(h.to.addresses, h.offer, limitMs)((in, _) => ShardOffer.decodeTaken(in.takeAll())) match {
      case Outcome.Here(shards) =>
        StateCommits.tell(ShardsHandedOver(h.runId, h.region, executor, h.to.executor, shards.toArray))
        shards.size
      case other =>
        logWarning(s"Penstock: ${h.to.executor} has not taken shards: $other. They come from the checkpoint")
        0
    }
}
