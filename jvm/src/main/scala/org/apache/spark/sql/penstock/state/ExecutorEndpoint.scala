package org.apache.spark.sql.penstock.state

import java.util.concurrent.{ArrayBlockingQueue, RejectedExecutionException, ThreadPoolExecutor, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.SparkEnv
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.sql.penstock.executors.ExecutorRegistered
import org.apache.spark.sql.penstock.lease.ThisExecutor
import org.apache.spark.util.ThreadUtils

import io.penstock.context.Component
import io.penstock.state.format.ShardOffer

/**
 * Endpoint of an executor. The driver uses it to make the executor take shards from another one before tasks need them.
 *
 * Messages use only types of the Java and Scala libraries. An executor deserializes them with the class loader that it
 * was started with, which does not contain the application's jars (`--jars`).
 *
 * @param receiver
 *   takes the shards
 */
final class ExecutorEndpoint(receiver: ShardReceiver) extends ThreadSafeRpcEndpoint with Component {
  override val rpcEnv: RpcEnv = SparkEnv.get.rpcEnv

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
        try context.reply(receiver.take(ShardOffer.decode(offer)).toList)
        catch { case NonFatal(e) => context.sendFailure(e) }
      }
    catch { case e: RejectedExecutionException => context.sendFailure(e) }
  }

  private val reference = rpcEnv.setupEndpoint(ExecutorEndpoint.Name, this)

  /** The message that registers the endpoint at the driver. */
  def registration: ExecutorRegistered = ExecutorRegistered(ThisExecutor.location, reference)

  override def held: Map[String, Long] = Map("threads" -> taking.getPoolSize.toLong)

  /** Takes no shards any more. */
  override def close(): Unit = {
    stop()
    taking.shutdownNow(): Unit
  }
}

private object ExecutorEndpoint {
  val Name = "penstock-executor"

  /** Maximum number of offers that wait. */
  val MaxWaiting = 64
}
