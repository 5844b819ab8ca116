package org.apache.spark.sql.penstock.executors

import java.util.concurrent.{ArrayBlockingQueue, RejectedExecutionException, ThreadPoolExecutor, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.sql.penstock.commit.TaskCommits
import org.apache.spark.sql.penstock.state.ShardReceiver
import org.apache.spark.util.ThreadUtils

import io.penstock.state.format.ShardOffer

/**
 * Where the driver tells an executor to take shards from another, ahead of the tasks that need them.
 *
 * Messages are of the Scala library's types only: an executor reads them with the class loader that it was started with,
 * which does not know the jars that the application brings (`--jars`).
 */
final class ExecutorEndpoint private (override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {

  /**
   * One thread: shards come in the order in which they matter, and tasks want the channels as well. What waits for long is of
   * batches that are over.
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

  /** Offers. */
  private val MaxWaiting = 64

  /** Starts it in this executor; gives what the driver is to know of it. */
  def start(): ExecutorRegistered = {
    val rpc = SparkEnv.get.rpcEnv
    ExecutorRegistered(TaskCommits.here, rpc.setupEndpoint(Name, new ExecutorEndpoint(rpc)))
  }
}

/**
 * An executor can be told to take shards.
 *
 * @param executor
 *   as a task location
 */
final case class ExecutorRegistered(executor: String, endpoint: RpcEndpointRef)
