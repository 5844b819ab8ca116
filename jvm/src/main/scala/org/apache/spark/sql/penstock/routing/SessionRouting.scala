package org.apache.spark.sql.penstock.routing

import java.lang.ref.WeakReference
import java.util.{UUID, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.execution.streaming.sources.{
  ForeachBatchSink,
  WriteToMicroBatchDataSource,
  WriteToMicroBatchDataSourceV1
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease.BatchLeases
import org.apache.spark.sql.penstock.state.StateDirectory
import org.apache.spark.sql.streaming.StreamingQuery

import io.penstock.conf.{ApplicationSetup, QuerySettings}

/**
 * What the rules of one session share. A streaming query plans in a session of its own, cloned when it starts, so this
 * is one run's routing.
 */
final private[routing] class SessionRouting(val session: SparkSession, leases: BatchLeases) extends Logging {
  @volatile private var resolved: Option[QuerySettings] = None
  @volatile private var foreachBatch = false
  private var run: Option[(UUID, RunRouting)] = None

  /** Options that were set since the run started, with their texts. */
  @volatile private var setSince = Map.empty[String, String]

  /** Newest batch in the query's offset log when the run started, -1 without one; None where that is not known. */
  @volatile private var newestAtStart: Option[Long] = None
  private var warned = false
  private val told = mutable.Set.empty[UUID]

  /** The query's settings; those of the session before the first batch was analyzed. */
  def settings: QuerySettings = resolved.getOrElse(resolve(Map.empty))

  /**
   * Checks what a query that this session starts has besides its options.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_SETTING_SCOPE
   */
  def checkSession(): Unit = check(Map.empty)

  /** The same with the options of a query. */
  def check(options: Map[String, String]): Unit = resolve(options): Unit

  /** Sets an option for the batches that are planned from now on. */
  def set(option: String, text: String): Unit = synchronized(setSince += option -> text)

  private def withSetSince(startedWith: QuerySettings): QuerySettings =
    setSince.foldLeft(startedWith) { case (settings, (option, text)) => settings.updated(option, text) }

  /**
   * Takes note of what a run starts from, before it plans a batch.
   *
   * @param newest
   *   batch in the query's offset log, -1 where there is none
   */
  def startsAfter(newest: Long): Unit = newestAtStart = Some(newest)

  private def resolve(options: Map[String, String]): QuerySettings =
    QuerySettings.resolve(options, session.conf.getAll, session.sparkContext.getConf.getAll.toMap)

  /**
   * Reads a query's options where they are still in sight: on the write node of its analyzed plan, at its first batch.
   * A wrong one fails the query there.
   */
  def readOptions(plan: LogicalPlan): Unit = if (resolved.isEmpty) {
    plan match {
      case w: WriteToMicroBatchDataSource => resolved = Some(resolve(w.writeOptions))
      case w: WriteToMicroBatchDataSourceV1 =>
        foreachBatch = w.sink.isInstanceOf[ForeachBatchSink[_]]
        resolved = Some(resolve(w.writeOptions))
      case _ =>
    }
  }

  /** The routing of a run of which a batch was planned. */
  def routing(runId: UUID): Option[RunRouting] = synchronized(run.collect { case (id, r) if id == runId => r })

  def run(info: StatefulOperatorStateInfo): RunRouting = synchronized {
    run.collect { case (id, r) if id == info.queryRunId => r }.getOrElse {
      val root = info.checkpointLocation
      val created = new RunRouting(
        session,
        info.queryRunId,
        root,
        () => withSetSince(settings),
        newestAtStart,
        foreachBatch,
        leases,
        new RoutingVersionLog(
          new StateDirectory(root, session.sessionState.newHadoopConf()),
          SQLConf.get.minBatchesToRetain
        )
      )
      run = Some(info.queryRunId -> created)
      created
    }
  }

  /** What the session of a query with Penstock's state must have set; it is the query's own session. */
  def beforeBatch(): Unit = {
    // Providers are views of a task: where one was says nothing about where its shards are, so none must be reported.
    if (!SQLConf.get.stateStoreUnloadOnCommit) session.conf.set(SQLConf.STATE_STORE_UNLOAD_ON_COMMIT.key, "true")
    if (!warned) {
      warned = true
      if (followers.nonEmpty) {
        logWarning(
          s"Penstock: ${followers.mkString(", ")} changes plans after Penstock's own rule. A columnar plugin that replaces " +
            "shuffles would route rows to the wrong tasks, and the query would fail. Name " +
            s"${ApplicationSetup.Extensions} last in ${ApplicationSetup.ExtensionsKey}."
        )
      }
    }
  }

  /** Columnar rules that run after Penstock's, which therefore see routed exchanges. */
  def followers: Seq[String] = session.sessionState.columnarRules
    .dropWhile(!_.isInstanceOf[RoutingColumnarRule]).drop(1).map(_.getClass.getName)

  def tellOnce(runId: UUID, reason: String): Unit = synchronized {
    if (told.add(runId)) logInfo(s"Penstock: run $runId is left alone: $reason")
  }
}

private[routing] object SessionRouting {

  /** Weak on both sides: the rules of a session hold its routing, and the routing holds its session. */
  private val bySession = new WeakHashMap[SparkSession, WeakReference[SessionRouting]]()

  /** The routing of a session that has one. */
  def find(session: SparkSession): Option[SessionRouting] =
    bySession.synchronized(Option(bySession.get(session)).flatMap(r => Option(r.get())))

  /** The routing of a query that runs, in the session of its own that it runs in. */
  def ofQuery(query: StreamingQuery): Option[SessionRouting] = query match {
    case w: StreamingQueryWrapper if w.isActive =>
      find(w.streamingQuery.sparkSessionForStream.asInstanceOf[SparkSession])
    case _ => None
  }

  /** The routing of a session; every rule of the session gets the same. */
  def of(session: SparkSession, leases: BatchLeases): SessionRouting = bySession.synchronized {
    find(session).getOrElse {
      val routing = new SessionRouting(session, leases)
      bySession.put(session, new WeakReference(routing))
      routing
    }
  }
}
