package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.concurrent.duration.FiniteDuration

import org.apache.spark.SparkEnv
import org.apache.spark.executor.CommitDeniedException
import org.apache.spark.rpc.{RpcEndpointRef, RpcTimeout}
import org.apache.spark.sql.penstock.lease.Holder
import org.apache.spark.util.RpcUtils

import io.penstock.context.{Component, ComponentKey, ExecutorContext}
import io.penstock.errors.PenstockException

/** Executor side of the driver's [[CommitEndpoint]]. */
final class CommitClient extends Component {
  import CommitEndpoint._

  /** The driver, found by the first message. */
  @volatile private var driver: Option[RpcEndpointRef] = None

  /**
   * Sends a message to the driver and waits for the answer.
   *
   * @throws io.penstock.errors.PenstockException
   *   if the driver rejects the message
   */
  def tell(message: CommitMessage): Unit =
    driverRef().askSync[Option[(String, String)]](message).foreach { case (errorClass, detail) =>
      val refused = new PenstockException(errorClass, detail)
      message match {
        // Spark does not count this exception as a failure of the task.
        case c: TaskCommitted if errorClass == "PENSTOCK_COMMIT_DENIED" =>
          val a = c.attempt
          throw new CommitDeniedException(refused.getMessage, a.stageId, a.partition, a.number)
        case _ => throw refused
      }
    }

  /** Those of the given queries that a run of the application works on, each with its batch; -1 before the first. */
  def live(stateRoots: Set[String]): Map[String, Long] =
    driverRef().askSync[Map[String, Long]](WhichAreLive(stateRoots))

  /**
   * Asks the driver which shards this executor, which is leaving, is to hand over. Empty if the application ends.
   *
   * @param executor
   *   task location of this executor
   * @param limitMs
   *   time within which the driver must answer
   */
  def handOver(executor: String, limitMs: Long): Seq[HandOver] = {
    val limit = new RpcTimeout(FiniteDuration(limitMs, TimeUnit.MILLISECONDS), "spark.penstock.handOver.limitMs")
    driverRef().askSync[Seq[HandedOver]](WhatToHandOver(executor), limit).map {
      case (runId, region, to, addresses, offer) =>
        HandOver(UUID.fromString(runId), region, Holder(to, addresses), offer)
    }
  }

  private def driverRef(): RpcEndpointRef = driver.getOrElse {
    val found = RpcUtils.makeDriverRef(Name, SparkEnv.get.conf, SparkEnv.get.rpcEnv)
    driver = Some(found)
    found
  }

  override def held: Map[String, Long] = Map("references" -> driver.size.toLong)

  override def close(): Unit = driver = None
}

object CommitClient extends ComponentKey[CommitClient](ExecutorContext)
