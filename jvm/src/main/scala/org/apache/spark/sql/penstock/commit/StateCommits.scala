package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.concurrent.duration.FiniteDuration
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import org.apache.spark.executor.CommitDeniedException
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, RpcTimeout, ThreadSafeRpcEndpoint}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.streaming.state.{StateStoreId, StateStoreProviderId}
import org.apache.spark.sql.penstock.executors.ExecutorOrders
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent
import org.apache.spark.util.{RpcUtils, ThreadUtils}
import org.apache.spark.{SparkConf, SparkContext, SparkEnv}

import io.penstock.conf.{ApplicationSetup, Settings}
import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.format.{ShardOffer, StoreKey}
import io.penstock.telemetry.{MovedState, StateLoad}

/** All query runs of this driver, and the RPC endpoint through which executors reach them. */
object StateCommits extends Logging {
  private val EndpointName = "PenstockStateCommits"

  /** A query run. It is alive as long as the thread that plans its batches. */
  final private class Run(val commits: QueryCommits, val thread: Thread, val env: SparkEnv)

  private val runs = new ConcurrentHashMap[UUID, Run]()

  /** Each query uses one thread while it writes, so a file system that hangs for one does not stop the others. */
  private lazy val writers = ThreadUtils.newDaemonCachedThreadPool("penstock-manifests")
  private var endpoint: (RpcEnv, RpcEndpointRef) = _
  @volatile private var driver: (RpcEnv, RpcEndpointRef) = _

  /** The leases, for planning batches. */
  val leases: BatchLeases = new BatchLeases {
    override def open(session: SparkSession, batch: BatchSpec)(
        layouts: => Map[Long, Layout]
    ): Map[Long, RegionLease] = {
      val env = SparkEnv.get
      startEndpoint(env.rpcEnv, session.sparkContext)
      runs.values.removeIf { r =>
        val isOver = !r.thread.isAlive || (r.env ne env)
        // Spark may report the end of the query only after this.
        if (isOver) r.commits.ended()
        isOver
      }: Unit
      runs
        .computeIfAbsent(
          batch.runId,
          { _ =>
            val conf = session.asInstanceOf[classic.SparkSession].sessionState.newHadoopConf()
            new Run(
              new QueryCommits(
                batch.runId,
                batch.stateRoot,
                batch.shardCount,
                conf,
                wantedShards(session.sparkContext.getConf),
                reportTo(session, batch),
                writers = writers
              ),
              Thread.currentThread(),
              env
            )
          }
        )
        .commits
        .open(batch)(layouts)
    }

    override def bring(runId: UUID, region: Long, to: Seq[(Int, String)]): Unit =
      order(runId, region, to)((commits, executor, _, taken, batchId) =>
        commits.broughtAhead(batchId, region, executor, taken.map(_._1))
      )

    override def copy(runId: UUID, region: Long, to: Seq[(Int, String)]): Unit =
      order(runId, region, to)((commits, executor, asked, taken, _) =>
        commits.copied(region, executor, asked, taken.map(_._1))
      )

    /**
     * Asks executors to take shards. `taken` receives the shards that each executor was asked for and those it took.
     */
    private def order(runId: UUID, region: Long, to: Seq[(Int, String)])(
        taken: (QueryCommits, String, Seq[Int], Seq[(Int, String)], Long) => Unit
    ): Unit = Option(runs.get(runId)).map(_.commits).foreach { commits =>
      val batchId = commits.batchId
      commits.offers(region, to).foreach { case (executor, offer) =>
        ExecutorOrders.take(executor, ShardOffer.encode(offer))(taken(commits, executor, offer.shards, _, batchId))
      }
    }

    override def replicas(runId: UUID, region: Long): Array[String] =
      Option(runs.get(runId)).map(_.commits.replicasOf(region)).getOrElse(Array.empty)

    override def owners(runId: UUID, region: Long): Array[String] =
      Option(runs.get(runId)).map(_.commits.ownersOf(region)).getOrElse(Array.empty)

    override def stateLoads(runId: UUID, region: Long): Map[StoreKey, StateLoad] =
      Option(runs.get(runId)).fold(Map.empty[StoreKey, StateLoad])(_.commits.stateLoadsOf(region))

    override def moved(runId: UUID, region: Long): Option[MovedState] =
      Option(runs.get(runId)).map(_.commits.movedOf(region))

    override def report(runId: UUID): StateReport = Option(runs.get(runId)).fold(StateReport.Empty)(_.commits.report)
  }

  /** Penstock's setting of the number of shards; None if it is not set, or if Spark's own setting differs from it. */
  private def wantedShards(conf: SparkConf): Option[Int] =
    conf
      .getOption(Settings.Shards.key)
      .map(_.trim.toInt)
      .filter(n => conf.getOption(ApplicationSetup.StatePartitionsKey).forall(_ == n.toString))

  /** Reports to Spark's count of commits, which Spark keeps if a user's function may read only a part of a batch. */
  private def reportTo(session: SparkSession, batch: BatchSpec): (StoreKey, Int, Long) => Unit = {
    val coordinator = session.asInstanceOf[classic.SparkSession].streams.stateStoreCoordinator
    (store, shard, version) => {
      val id = StateStoreId(batch.stateRoot, store.operatorId, shard, store.storeName)
      coordinator.reportStateStoreCommit(StateStoreProviderId(id, batch.runId), version, store.storeName)
    }
  }

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

  /** Reports of all runs that are alive on this driver. */
  private[commit] def reports: Seq[StateReport] =
    runs.values.asScala.filter(_.thread.isAlive).map(_.commits.report).toSeq

  /** State directories of the runs that are alive on this driver, each with the batch that it is at. */
  private def liveRoots: Map[String, Long] = {
    val out = Map.newBuilder[String, Long]
    runs.values.forEach(r => if (r.thread.isAlive) out += r.commits.stateRoot -> r.commits.batchId)
    out.result()
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

  private def toHandOver(executor: String): Seq[HandedOver] =
    if (SparkContext.getActive.forall(_.isStopped)) Nil
    else
      for (run <- runs.values.asScala.toSeq if run.thread.isAlive; h <- run.commits.handOver(executor))
        yield (h.runId.toString, h.region, h.to.executor, h.to.addresses, h.offer)

  private def driverRef(): RpcEndpointRef = {
    val rpc = SparkEnv.get.rpcEnv
    val known = driver
    if (known != null && (known._1 eq rpc)) known._2
    else {
      val conf: SparkConf = SparkEnv.get.conf
      val ref = RpcUtils.makeDriverRef(EndpointName, conf, rpc)
      driver = (rpc, ref)
      ref
    }
  }

  private def startEndpoint(rpc: RpcEnv, context: SparkContext): Unit = synchronized {
    if (endpoint == null || (endpoint._1 ne rpc)) {
      endpoint = (rpc, rpc.setupEndpoint(EndpointName, new Endpoint(rpc)))
      context.addSparkListener(new SparkListener {
        override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
          case e: QueryTerminatedEvent => Option(runs.get(e.runId)).foreach(_.commits.ended())
          case _ =>
        }
      })
    }
  }

  final private case class WhichAreLive(stateRoots: Set[String])

  /** A [[HandOver]] in types of the Scala library. */
  private type HandedOver = (String, Long, String, Map[String, String], Array[Byte])

  final private case class WhatToHandOver(executor: String)

  /**
   * Receives messages of tasks and executors. Never waits for a file: other threads write manifests, and answers are
   * sent when they are durable.
   *
   * Answers consist only of types of the Scala library, because an executor reads them with the class loader that it
   * was started with, which does not know the jars that the application adds (`--jars`).
   */
  final private class Endpoint(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {
    private val pool = ThreadUtils.newDaemonCachedThreadPool("penstock-commits", 16)

    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case m: CommitMessage =>
        pool.execute { () =>
          try handle(m)(outcome => context.reply(refusal(m, outcome)))
          catch { case e: Throwable => context.reply(refusal(m, Failure(e))) }
        }
      case WhichAreLive(roots) => context.reply(liveRoots.filter { case (root, _) => roots(root) })
      case WhatToHandOver(executor) =>
        pool.execute { () =>
          try context.reply(toHandOver(executor))
          catch { case NonFatal(e) => context.sendFailure(e) }
        }
    }

    override def onStop(): Unit = pool.shutdownNow(): Unit

    private def refusal(m: CommitMessage, outcome: Try[Unit]): Option[(String, String)] = outcome match {
      case Success(_) => None
      case Failure(e: PenstockException) => Some(e.errorClass -> e.detail)
      case Failure(e) =>
        logError(s"Commit of run ${m.runId} failed", e)
        Some("PENSTOCK_COMMIT_FAILED" -> s"the driver could not write the state of the batch: $e")
    }

    private def handle(m: CommitMessage)(answer: Try[Unit] => Unit): Unit = {
      val run = runs.get(m.runId)
      if (run == null) {
        throw new PenstockException(
          "PENSTOCK_BATCH_CLOSED",
          s"run ${m.runId} has ended, so its commits are rejected"
        )
      }
      m match {
        case c: TaskCommitted => run.commits.committed(c)(answer)
        case s: SnapshotsWritten => answer(Try(run.commits.snapshotsWritten(s)))
        case h: ShardsHandedOver => answer(Try(run.commits.handedOver(h)))
      }
    }
  }
}
