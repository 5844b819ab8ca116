package org.apache.spark.sql.penstock.executors

import java.util.concurrent.{ConcurrentHashMap, RejectedExecutionException, TimeoutException}

import scala.concurrent.ExecutionContext
import scala.util.{Failure, Success}

import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.util.ThreadUtils

import io.penstock.context.{Component, ComponentKey, DriverContext}
import io.penstock.process.DaemonPool

/**
 * Driver side of the executors' endpoints. Orders to an executor that has ended are lost. This is harmless, because
 * the checkpoint has all state.
 */
final class ExecutorOrders extends Component with Logging {
  private val endpoints = new ConcurrentHashMap[String, RpcEndpointRef]()

  /** Threads that handle answers. Separate threads, because the query's commits may be busy. */
  private val threads = new DaemonPool(ThreadUtils.newDaemonCachedThreadPool("penstock-executor-answers", 4))
  private val answers = ExecutionContext.fromExecutor(threads)

  /** Registers an executor. */
  def arrived(executor: ExecutorRegistered): Unit = endpoints.put(executor.executor, executor.endpoint): Unit

  /**
   * Orders an executor to take shards. Returns immediately.
   *
   * @param executor
   *   The executor, as a task location
   * @param offer
   *   Encoded [[io.penstock.state.format.ShardOffer]]
   * @param taken
   *   Called with the shards that the executor has afterwards, each with the transport that brought it
   */
  def take(executor: String, offer: Array[Byte])(taken: List[(Int, String)] => Unit): Unit =
    Option(endpoints.get(executor)).foreach { endpoint =>
      endpoint.ask[List[(Int, String)]](offer).onComplete {
        case Success(shards) => taken(shards)
        case Failure(e @ (_: TimeoutException | _: RejectedExecutionException)) =>
          logInfo(s"Penstock: $executor is too busy to take shards ahead of a batch: $e")
        case Failure(e) =>
          // An executor that has ended does not return under the same name.
          endpoints.remove(executor, endpoint)
          logInfo(s"Penstock: $executor did not take shards ahead of a batch: $e")
      }(answers)
    }

  override def held: Map[String, Long] = Map("executors" -> endpoints.size.toLong, "threads" -> threads.size.toLong)

  override def close(): Unit = {
    endpoints.clear()
    threads.close()
  }
}

object ExecutorOrders extends ComponentKey[ExecutorOrders](DriverContext)
