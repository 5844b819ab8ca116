package org.apache.spark.sql.penstock.commit

import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.util.ThreadUtils

import io.penstock.errors.PenstockException
import io.penstock.process.DaemonPool

/**
 * Receives messages of tasks and executors on the driver. Never waits for a file: other threads write manifests, and
 * answers are sent when they are durable.
 *
 * Answers consist only of types of the Scala library, because an executor reads them with the class loader that it was
 * started with, which does not know the jars that the application adds (`--jars`).
 */
final private[commit] class CommitEndpoint(override val rpcEnv: RpcEnv, commits: StateCommits)
    extends ThreadSafeRpcEndpoint
    with Logging
    with AutoCloseable {
  import CommitEndpoint._

  private val pool =
    new DaemonPool(ThreadUtils.newDaemonCachedThreadPool("penstock-commits", Threads))

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case m: CommitMessage =>
      pool.execute { () =>
        try handle(m)(outcome => context.reply(refusal(m, outcome)))
        catch { case e: Throwable => context.reply(refusal(m, Failure(e))) }
      }
    case WhichAreLive(roots) => context.reply(commits.liveRoots.filter { case (root, _) => roots(root) })
    case WhatToHandOver(executor) =>
      pool.execute { () =>
        try context.reply(commits.toHandOver(executor).map(onWire))
        catch { case NonFatal(e) => context.sendFailure(e) }
      }
  }

  /** Number of threads that have not ended. */
  def threads: Int = pool.size

  /** Receives no further messages. */
  override def close(): Unit = {
    stop()
    pool.close()
  }

  private def onWire(h: HandOver): HandedOver = (h.runId.toString, h.region, h.to.executor, h.to.addresses, h.offer)

  private def refusal(m: CommitMessage, outcome: Try[Unit]): Option[(String, String)] = outcome match {
    case Success(_) => None
    case Failure(e: PenstockException) => Some(e.errorClass -> e.detail)
    case Failure(e) =>
      logError(s"Commit of run ${m.runId} failed", e)
      Some("PENSTOCK_COMMIT_FAILED" -> s"the driver could not write the state of the batch: $e")
  }

  private def handle(m: CommitMessage)(answer: Try[Unit] => Unit): Unit = {
    val run = commits.run(m.runId).getOrElse(throw new PenstockException(
      "PENSTOCK_BATCH_CLOSED",
      s"run ${m.runId} has ended, so its commits are rejected"
    ))
    m match {
      case c: TaskCommitted => run.committed(c)(answer)
      case s: SnapshotsWritten => answer(Try(run.snapshotsWritten(s)))
      case h: ShardsHandedOver => answer(Try(run.handedOver(h)))
    }
  }
}

private[commit] object CommitEndpoint {
  val Name = "PenstockStateCommits"
  private val Threads = 16

  final case class WhichAreLive(stateRoots: Set[String])

  /** A [[HandOver]] in types of the Scala library. */
  type HandedOver = (String, Long, String, Map[String, String], Array[Byte])

  final case class WhatToHandOver(executor: String)
}
