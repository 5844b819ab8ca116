package org.apache.spark.sql.penstock.executors

import java.util.concurrent.{ConcurrentHashMap, RejectedExecutionException, TimeoutException}

import scala.concurrent.ExecutionContext
import scala.util.{Failure, Success}

import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.util.ThreadUtils

/** Driver side of the executors' endpoints. What is told to one that is gone is lost: the checkpoint has everything. */
object ExecutorOrders extends Logging {
  private val endpoints = new ConcurrentHashMap[String, RpcEndpointRef]()

  /** Answers are dealt with by a thread of their own: the query's commits may be busy. */
  private val answers =
    ExecutionContext.fromExecutor(ThreadUtils.newDaemonCachedThreadPool("penstock-executor-answers", 4))

  def arrived(executor: ExecutorRegistered): Unit = endpoints.put(executor.executor, executor.endpoint): Unit

  /** Forgets all, when the application ends. */
  def clear(): Unit = endpoints.clear()

  /**
   * Tells an executor to take shards. Returns at once.
   *
   * @param offer
   *   encoded [[io.penstock.state.format.ShardOffer]]
   * @param taken
   *   gets the shards that it has then, each with the transport that brought it
   */
  def take(executor: String, offer: Array[Byte])(taken: List[(Int, String)] => Unit): Unit =
    Option(endpoints.get(executor)).foreach { endpoint =>
      endpoint.ask[List[(Int, String)]](offer).onComplete {
        case Success(shards) => taken(shards)
        case Failure(e @ (_: TimeoutException | _: RejectedExecutionException)) =>
          logInfo(s"Penstock: $executor is too busy to take shards ahead of a batch: $e")
        case Failure(e) =>
          // An executor that went away does not come back under its name.
          endpoints.remove(executor, endpoint)
          logInfo(s"Penstock: $executor has not taken shards ahead of a batch: $e")
      }(answers)
    }
}
