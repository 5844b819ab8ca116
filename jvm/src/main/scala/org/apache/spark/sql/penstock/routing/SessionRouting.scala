package org.apache.spark.sql.penstock.routing

import java.util.UUID
import java.util.concurrent.Executor

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.sources.{
  ForeachBatchSink,
  WriteToMicroBatchDataSource,
  WriteToMicroBatchDataSourceV1
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease.BatchLeases
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.conf.{ApplicationSetup, HadoopSources, Mode, QuerySettings}

/**
 * State that the rules of one session share. A streaming query plans in a session of its own, which is cloned when the
 * query starts, so this object belongs to one run.
 */
final private[routing] class SessionRouting(val session: SparkSession, leases: BatchLeases, learners: Executor)
    extends Logging {
  @volatile private var resolved: Option[QuerySettings] = None
  @volatile private var foreachBatch = false
  private var run: Option[(UUID, RunRouting)] = None

  /** Options that were set since the run started, with their values as text. */
  @volatile private var setSince = Map.empty[String, String]

  /**
   * Newest batch in the query's offset log when the run started; -1 if the log was empty, None if unknown.
   */
  @volatile private var newestAtStart: Option[Long] = None
  private var warned = false
  private val announced = mutable.Set.empty[UUID]

  /** The query's settings. Before the first batch is analyzed, the session's settings. */
  def settings: QuerySettings = resolved.getOrElse(resolve(Map.empty))

  /**
   * Checks the settings that a query of this session gets from the session and the application, without the query's
   * options.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_SETTING_SCOPE
   */
  def checkSession(): Unit = check(Map.empty)

  /** Like [[checkSession]], with the options of a query added. */
  def check(options: Map[String, String]): Unit = resolve(options): Unit

  /** Sets an option. It applies to batches that are planned after this call. */
  def set(option: String, text: String): Unit = synchronized(setSince += option -> text)

  private def withSetSince(startedWith: QuerySettings): QuerySettings =
    setSince.foldLeft(startedWith) { case (settings, (option, text)) => settings.updated(option, text) }

  /**
   * Records where a run starts. Must be called before the run plans a batch.
   *
   * @param newest
   *   Newest batch in the query's offset log, -1 if the log is empty
   */
  def startsAfter(newest: Long): Unit = newestAtStart = Some(newest)

  private def resolve(options: Map[String, String]): QuerySettings =
    QuerySettings.resolve(options, session.conf.getAll, session.sparkContext.getConf.getAll.toMap)

  /**
   * Reads the query's options from the write node of its analyzed plan, at the first batch. The physical plan
   * no longer has them. An invalid option fails the query here.
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

  /** The routing of a run; None if no batch of it has been planned. */
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
        learners,
        new RoutingVersionLog(
          new StateDirectory(root, session.sessionState.newHadoopConf()),
          SQLConf.get.minBatchesToRetain
        )
      )
      run = Some(info.queryRunId -> created)
      // Not earlier: the first use of a file system, such as the checkpoint's, loads settings with their sources.
      if (settings.mode != Mode.Off) HadoopSources.drop(session.sparkContext.hadoopConfiguration)
      created
    }
  }

  /**
   * Sets what Penstock's state needs in the query's own session, and warns once about rules that may conflict with it.
   */
  def beforeBatch(): Unit = {
    // A provider is only a task's view of its shards. Its location says nothing about where the shards are, so Spark
    // must not report providers as loaded.
    if (!SQLConf.get.stateStoreUnloadOnCommit) session.conf.set(SQLConf.STATE_STORE_UNLOAD_ON_COMMIT.key, "true")
    if (!warned) {
      warned = true
      if (followers.nonEmpty) {
        logWarning(
          s"Penstock: ${followers.mkString(", ")} changes plans after Penstock's own rule. If it replaces " +
            "shuffles, rows reach the wrong tasks and the query fails. List " +
            s"${ApplicationSetup.Extensions} last in ${ApplicationSetup.ExtensionsKey}."
        )
      }
    }
  }

  /** Columnar rules that run after Penstock's rule and therefore see routed exchanges. */
  def followers: Seq[String] = session.sessionState.columnarRules
    .dropWhile(!_.isInstanceOf[RoutingColumnarRule]).drop(1).map(_.getClass.getName)

  /** Logs, once for each run, why Penstock does not change the query. */
  def tellOnce(runId: UUID, reason: String): Unit = synchronized {
    if (announced.add(runId)) logInfo(s"Penstock does not change run $runId: $reason")
  }
}
