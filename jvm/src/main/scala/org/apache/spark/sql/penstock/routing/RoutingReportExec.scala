package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{CollectMetricsExec, SparkPlan}
import org.apache.spark.sql.penstock.executors.LatencyTargets
import org.apache.spark.sql.penstock.lease.StateReport
import org.apache.spark.sql.penstock.report.{NamedRow, ReportSchema}
import org.apache.spark.sql.types._

import io.penstock.conf.Mode
import io.penstock.metrics.{MetricOutput, Metrics}
import io.penstock.telemetry.{KeyShare, RunActivity, StateLoad, StoreContent}

/** The report of a batch. It is complete once the batch has run. */
private[routing] trait RoutingReport {
  def row: Row

  /** One line about the plan of the batch, for `explain`. */
  def planned: String
}

/** Report for a query that Penstock does not change. */
final private[routing] class LeftAlone(reason: String) extends RoutingReport {
  override def row: Row = NamedRow.of(ReportSchema.report)(
    "mode" -> Mode.Off.name,
    "routingVersion" -> None,
    "shards" -> None,
    "reason" -> reason,
    "regions" -> Nil,
    "operators" -> Nil,
    "stores" -> Nil,
    "state" -> None,
    "scaling" -> None
  )
  override def planned: String = s"does not change this query: $reason"
}

final private[routing] class BatchReport(batch: BatchRouting) extends RoutingReport {
  import RoutingReport._

  override def planned: String =
    s"mode ${batch.mode}, routing version ${batch.routingVersion.number}, ${batch.spec.shardCount} shards, regions: " +
      batch.regions.map(r =>
        s"${r.spec.region} tasks ${batch.routingVersion.tasks(r.spec.region)}${r.reason.orElse(r.inTurn).fold("")(" (" + _ + ")")}"
      )
        .mkString(", ")

  override def row: Row = {
    val state = batch.state()
    NamedRow.of(ReportSchema.report)(
      "mode" -> batch.mode.name,
      "routingVersion" -> batch.routingVersion.number,
      "shards" -> batch.spec.shardCount,
      "reason" -> None,
      "regions" -> batch.regions.map(region),
      "operators" -> batch.regions.flatMap(operators),
      "stores" -> stores(state),
      "state" -> run(state),
      "scaling" -> LatencyTargets.current.reason(batch.spec.runId)
    )
  }

  private def region(r: RegionRouting): Row = {
    val decision = r.barrier.decision.filter(_ => r.reason.isEmpty)
    val tasks = r.load.tasks
    def overTasksMs(ns: Seq[Long]) = Option.when(tasks.nonEmpty)(ns.sum / NsPerMs)
    NamedRow.of(ReportSchema.region)(
      "region" -> r.spec.region,
      "operators" -> r.names.mkString(" + "),
      "routed" -> r.reason.isEmpty,
      "tasks" -> batch.routingVersion.tasks(r.spec.region),
      "tasksReason" -> r.plans.tasks,
      "pinned" -> r.lease.layout.pinned.size,
      "pinnedKeys" -> pinned(r),
      "rows" -> decision.map(_.rows.sum),
      "imbalance" -> decision.map(_.imbalance),
      "expectedImbalance" -> decision.map(_.expectedImbalance),
      "imbalanceBefore" -> decision.flatMap(_.imbalanceBefore),
      "achievedImbalance" -> r.load.achievedImbalance,
      "busyMs" -> overTasksMs(tasks.map(_.workNs)),
      "interruptedMs" -> overTasksMs(tasks.map(_.interruptedNs)),
      "waitMs" -> overTasksMs(tasks.map(_.waitNs)),
      "stateOperations" -> r.stateOperations,
      "heavyKeys" -> r.heavyKeys.take(ReportSchema.MaxKeys).map(key),
      "executors" -> Option.when(r.executorOf.nonEmpty)(r.executorOf.distinct.size),
      "homes" -> r.plans.homes,
      "shardsAhead" -> r.moved.map(_.ahead),
      "tasksElsewhere" ->
        decision.filter(d => r.executorOf.nonEmpty && (d.binding eq d.proposed)).map(r.elsewhere),
      "shardsMoved" -> decision.map(_.moved),
      "bytesMoved" -> r.moved.map(_.bytes),
      "loadMs" -> r.moved.map(_.loadNs / NsPerMs),
      "brought" -> r.moved.map(_.inWords),
      "decisionMicros" -> decision.map(_.micros),
      "decision" -> decision.map(outcome(r, _)),
      "inTurn" -> r.inTurn,
      "reason" -> r.reason
    )
  }

  private def pinned(r: RegionRouting): Seq[Row] = {
    val layout = r.lease.layout
    r.pinned.map { key =>
      NamedRow.of(ReportSchema.pinned)(
        "key" -> key.text,
        "shard" -> layout.shardOf(key.hash),
        "rows" -> key.rows,
        "seen" -> key.seen
      )
    }
  }

  private def operators(r: RegionRouting): Seq[Row] =
    r.barrier.decision.filter(_ => r.reason.isEmpty).toSeq.flatMap { decision =>
      val loads = r.load.ofOperators(decision.rows)
      r.spec.operators.zip(r.names).map { case (operator, name) =>
        val load = loads.get(operator.operatorId)
        val (rows, busyNs) = load.fold((0L, 0L))(l => (l.rows.sum, l.busyNs.sum))
        NamedRow.of(ReportSchema.operator)(
          "operator" -> operator.operatorId,
          "name" -> name,
          "rows" -> rows,
          "rowsMs" -> busyNs / NsPerMs
        )
      }
    }

  private def outcome(r: RegionRouting, d: Decision): String = {
    val description = r.outcome.fold("")(_.inWords(batch.theta, r.limited.batches, batch.foreseen))
    val unpinned = r.plans.unpinned.filter(_ => d.heaviestShard * d.proposed.tasks > batch.theta)
    val decided = if (batch.mode == Mode.Observe) s"observe: $description" else description
    (r.plans.placed ++ Some(decided) ++ unpinned ++ r.plans.pins).mkString("; ")
  }

  private def key(k: KeyShare): Row = NamedRow.of(ReportSchema.key)(
    "key" -> k.text,
    "shard" -> k.shard,
    "busyShare" -> k.busyShare,
    "busyShareError" -> k.busyShare.map(_ => k.busyError),
    "rowsShare" -> k.rowsShare,
    "rowsShareError" -> k.rowsError
  )
}

private[routing] object RoutingReport {
  private[routing] val NsPerMs = 1000000L

  def stores(state: StateReport): Seq[Row] = state.lags.map { lag =>
    val content = StoreContent(lag, state.loads.getOrElse(lag.store, StateLoad.Empty))
    val values = Seq("operator" -> lag.store.operatorId, "store" -> lag.store.storeName) ++
      Metrics.read(MetricOutput.Store, content).map { case (metric, value) => metric.field -> value }
    NamedRow.of(ReportSchema.store)(values: _*)
  }

  def run(state: StateReport): Row = {
    val activity = RunActivity(state.snapshotFiles, state.snapshotShards, state.snapshotBytes, state.filesDeleted)
    val values = Metrics.read(MetricOutput.Run, activity).map { case (metric, value) => metric.field -> value }
    NamedRow.of(ReportSchema.run)(values: _*)
  }
}

/**
 * Topmost node of the plan of a stateful query, except for a node that writes the batch. Rows pass unchanged. Spark
 * reads the metrics of such nodes when it reports progress, so the report appears as `observedMetrics["penstock"]`, or
 * under another name from [[org.apache.spark.sql.penstock.report.ReportName]] if the query has a metric of its own with that name.
 */
final class RoutingReportExec(name: String, child: SparkPlan, @transient private val report: RoutingReport)
    extends CollectMetricsExec(name, Nil, child) {

  override val metricsSchema: StructType = ReportSchema.report
  override def nodeName: String = "Penstock"
  override def collectedMetrics: Row = report.row
  override def resetMetrics(): Unit = metrics.valuesIterator.foreach(_.reset())
  override protected def stringArgs: Iterator[Any] = Iterator(report.planned)
  override protected def otherCopyArgs: Seq[AnyRef] = report :: Nil
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): CollectMetricsExec =
    new RoutingReportExec(name, newChild, report)
  override def canEqual(other: Any): Boolean = other.isInstanceOf[RoutingReportExec]
  override def equals(other: Any): Boolean = other.isInstanceOf[RoutingReportExec] && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}
