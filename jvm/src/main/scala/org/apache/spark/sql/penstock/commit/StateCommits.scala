package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.streaming.state.{StateStoreId, StateStoreProviderId}
import org.apache.spark.sql.penstock.executors.{ExecutorOrders, LiveExecutors}
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent
import org.apache.spark.util.ThreadUtils
import org.apache.spark.{SparkConf, SparkContext, SparkEnv}

import com.codahale.metrics.Counter
import io.penstock.conf.{ApplicationSetup, Settings}
import io.penstock.context.{Component, ComponentKey, DriverContext}
import io.penstock.process.DaemonPool
import io.penstock.sharding.Layout
import io.penstock.state.format.{ShardOffer, StoreKey}
import io.penstock.telemetry.{MovedState, StateLoad}

/**
 * All query runs of this driver, and the threads that work for them. Its endpoint is set up with the first batch.
 *
 * @param orders
 *   the executors' endpoints
 */
final class StateCommits(orders: ExecutorOrders) extends Component {

  /** A query run. It is alive as long as the thread that plans its batches. */
  final private class Run(val commits: QueryCommits, val thread: Thread)

  private val runs = new ConcurrentHashMap[UUID, Run]()

  /** Each query uses one thread while it writes, so a file system that hangs for one does not stop the others. */
  private val writers = new DaemonPool(ThreadUtils.newDaemonCachedThreadPool("penstock-manifests"))

  /** Each cleaner uses at most one thread, for the same reason. */
  private val cleaners = new DaemonPool(ThreadUtils.newDaemonCachedThreadPool("penstock-cleaner"))

  private val clock = new CommitClock

  /** Number of files of checkpoints that were deleted, over all runs. */
  val filesDeleted = new Counter
  private var endpoint: Option[CommitEndpoint] = None
  @volatile private var closed = false

  /** The leases, for planning batches. */
  val leases: BatchLeases = new BatchLeases {
    override def open(session: SparkSession, batch: BatchSpec)(
        layouts: => Map[Long, Layout]
    ): Map[Long, RegionLease] = {
      startEndpoint(session.sparkContext)
      runs.values.removeIf { r =>
        val isOver = !r.thread.isAlive
        // Spark may report the end of the query only after this.
        if (isOver) r.commits.ended()
        isOver
      }: Unit
      val commits =
        runs.computeIfAbsent(batch.runId, _ => new Run(commitsOf(session, batch), Thread.currentThread())).commits
      if (closed) {
        // The run was added after `close` had removed the others.
        runs.clear()
        throw applicationEnded()
      }
      commits.open(batch)(layouts)
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
    ): Unit = run(runId).foreach { commits =>
      val batchId = commits.batchId
      commits.offers(region, to).foreach { case (executor, offer) =>
        orders.take(executor, ShardOffer.encode(offer))(taken(commits, executor, offer.shards, _, batchId))
      }
    }

    override def replicas(runId: UUID, region: Long): Array[String] =
      run(runId).map(_.replicasOf(region)).getOrElse(Array.empty)

    override def owners(runId: UUID, region: Long): Array[String] =
      run(runId).map(_.ownersOf(region)).getOrElse(Array.empty)

    override def stateLoads(runId: UUID, region: Long): Map[StoreKey, StateLoad] =
      run(runId).fold(Map.empty[StoreKey, StateLoad])(_.stateLoadsOf(region))

    override def moved(runId: UUID, region: Long): Option[MovedState] =
      run(runId).map(_.movedOf(region))

    override def report(runId: UUID): StateReport = run(runId).fold(StateReport.Empty)(_.report)
  }

  private def commitsOf(session: SparkSession, batch: BatchSpec) = new QueryCommits(
    batch.runId,
    batch.stateRoot,
    batch.shardCount,
    session.asInstanceOf[classic.SparkSession].sessionState.newHadoopConf(),
    wantedShards(session.sparkContext.getConf),
    reportTo(session, batch),
    writers = writers,
    newCleaner = new StateCleaner(_, _, cleaners, files => filesDeleted.inc(files.toLong)),
    clock = clock
  )

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

  /** A run that this driver knows. */
  private[commit] def run(runId: UUID): Option[QueryCommits] = Option(runs.get(runId)).map(_.commits)

  private def alive: Seq[QueryCommits] = runs.values.asScala.toSeq.filter(_.thread.isAlive).map(_.commits)

  /** Reports of all runs that are alive on this driver. */
  private[commit] def reports: Seq[StateReport] = alive.map(_.report)

  /** State directories of the runs that are alive on this driver, each with the batch that it is at. */
  private[commit] def liveRoots: Map[String, Long] = alive.map(run => run.stateRoot -> run.batchId).toMap

  /** What an executor that ends is to hand over; nothing if the application ends. */
  private[commit] def toHandOver(executor: String): Seq[HandOver] =
    SparkContext.getActive.filterNot(_.isStopped).toSeq.flatMap { context =>
      val getsTasks = LiveExecutors.getsTasks(context)
      alive.flatMap(_.handOver(executor)(getsTasks))
    }

  private def applicationEnded() = new IllegalStateException("the application has ended, so no batch is started")

  private def startEndpoint(context: SparkContext): Unit = synchronized {
    if (closed) throw applicationEnded()
    if (endpoint.isEmpty) {
      val rpc = SparkEnv.get.rpcEnv
      val started = new CommitEndpoint(rpc, this)
      rpc.setupEndpoint(CommitEndpoint.Name, started)
      endpoint = Some(started)
      context.addSparkListener(new SparkListener {
        override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
          case e: QueryTerminatedEvent => run(e.runId).foreach(_.ended())
          case _ =>
        }
      })
    }
  }

  override def held: Map[String, Long] = Map(
    "runs" -> runs.size.toLong,
    "threads" -> (writers.size + cleaners.size + clock.size + synchronized(endpoint).fold(0)(_.threads)).toLong
  )

  /** Rejects all further messages and batches. */
  override def close(): Unit = {
    synchronized {
      closed = true
      endpoint
    }.foreach(_.close())
    runs.values.forEach(_.commits.ended())
    runs.clear()
    clock.close()
    writers.close()
    cleaners.close()
  }
}

object StateCommits extends ComponentKey[StateCommits](DriverContext)
