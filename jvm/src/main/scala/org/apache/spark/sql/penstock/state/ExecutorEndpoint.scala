package org.apache.spark.sql.penstock.state

import java.util.concurrent.{ArrayBlockingQueue, RejectedExecutionException, ThreadPoolExecutor, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.sql.penstock.executors.ExecutorRegistered
import org.apache.spark.sql.penstock.lease.ThisExecutor
import org.apache.spark.util.ThreadUtils

import io.penstock.state.format.ShardOffer

/**
 * Endpoint of an executor. The driver uses it to make the executor take shards from another one before tasks need them.
 *
 * Messages use only types of the Java and Scala libraries. An executor deserializes them with the class loader that it
 * was started with, which does not contain the application's jars (`--jars`).
 */
final class ExecutorEndpoint private (override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {

  /**
   * One thread, so that the most important shards come first and tasks can use the channels too. The queue is short,
   * because offers that wait for long belong to batches that have ended.
   */
  private val taking = new ThreadPoolExecutor(
    1,
    1,
    0L,
    TimeUnit.MILLISECONDS,
    new ArrayBlockingQueue[Runnable](ExecutorEndpoint.MaxWaiting),
    ThreadUtils.namedThreadFactory("penstock-take")
  )

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = { case offer: Array[Byte] =>
    try
      taking.execute { () =>
        try context.reply(ShardReceiver.take(ShardOffer.decode(offer)).toList)
        catch { case NonFatal(e) => context.sendFailure(e) }
      }
    catch { case e: RejectedExecutionException => context.sendFailure(e) }
  }

  override def onStop(): Unit = taking.shutdownNow(): Unit
}

object ExecutorEndpoint {
  private val Name = "penstock-executor"

  /** Maximum number of offers that wait. */
  private val MaxWaiting = 64

  /** Starts the endpoint in this executor. Returns the message that registers it at the driver. */
  def start(): ExecutorRegistered = {
    val rpc = SparkEnv.get.rpcEnv
    ExecutorRegistered(ThisExecutor.location, rpc.setupEndpoint(Name, new ExecutorEndpoint(rpc)))
  }
}
