package org.apache.spark.sql.penstock.routing

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.execution.{CollectMetricsExec, SparkPlan}
import org.apache.spark.sql.penstock.executors.LatencyTargets
import org.apache.spark.sql.penstock.lease.StateReport
import org.apache.spark.sql.penstock.report.ReportSchema
import org.apache.spark.sql.types._

import io.penstock.conf.Mode
import io.penstock.metrics.{MetricOutput, Metrics}
import io.penstock.state.format.SnapshotLag
import io.penstock.telemetry.{KeyShare, RunActivity, StateLoad, StoreContent}

/** The report of a batch. It is complete once the batch has run. */
private[routing] trait RoutingReport {
  def row: Row

  /** One line about the plan of the batch, for `explain`. */
  def planned: String
}

/** Report for a query that Penstock does not change. */
final private[routing] class LeftAlone(reason: String) extends RoutingReport {
  override def row: Row = RoutingReport.row("off", null, null, reason, Nil, Nil, None, None)
  override def planned: String = s"does not change this query: $reason"
}

final private[routing] class BatchReport(batch: BatchRouting) extends RoutingReport {
  override def planned: String =
    s"mode ${batch.mode}, routing version ${batch.routingVersion.number}, ${batch.spec.shardCount} shards, regions: " +
      batch.regions.map(r =>
        s"${r.spec.region} tasks ${batch.routingVersion.tasks(r.spec.region)}${r.reason.orElse(r.inTurn).fold("")(" (" + _ + ")")}"
      )
        .mkString(", ")

  override def row: Row =
    RoutingReport.row(
      batch.mode.name,
      batch.routingVersion.number,
      batch.spec.shardCount,
      null,
      batch.regions.map(region),
      batch.regions.flatMap(operators),
      Some(batch.state()),
      LatencyTargets.current.reason(batch.spec.runId)
    )

  private def region(r: RegionRouting): Row = {
    val decision = r.barrier.decision.filter(_ => r.reason.isEmpty)
    val tasks = r.load.tasks
    val workNs = tasks.map(_.workNs).toArray
    val values: Seq[Any] = Seq(
      r.spec.region,
      r.names.mkString(" + "),
      r.reason.isEmpty,
      batch.routingVersion.tasks(r.spec.region),
      r.plans.tasks.orNull,
      r.lease.layout.pinned.size,
      pinned(r),
      decision.map(_.rows.sum).orNull,
      decision.map(_.imbalance).orNull,
      decision.map(_.expectedImbalance).orNull,
      decision.flatMap(_.imbalanceBefore).orNull,
      r.load.achievedImbalance.orNull,
      Option.when(workNs.nonEmpty)(workNs.sum / 1000000L).orNull,
      Option.when(workNs.nonEmpty)(tasks.map(_.interruptedNs).sum / 1000000L).orNull,
      Option.when(workNs.nonEmpty)(tasks.map(_.waitNs).sum / 1000000L).orNull,
      r.stateOperations.orNull,
      r.heavyKeys.take(ReportSchema.MaxKeys).map(key),
      Option.when(r.executorOf.nonEmpty)(r.executorOf.distinct.size).orNull,
      r.plans.homes.orNull,
      r.moved.map(_.ahead).orNull,
      decision.filter(d => r.executorOf.nonEmpty && (d.binding eq d.proposed)).map(r.elsewhere).orNull,
      decision.map(_.moved).orNull,
      r.moved.map(_.bytes).orNull,
      r.moved.map(_.loadNs / 1000000L).orNull,
      r.moved.map(_.inWords).orNull,
      decision.map(_.micros).orNull,
      decision.map(outcome(r, _)).orNull,
      r.inTurn.orNull,
      r.reason.orNull
    )
    new GenericRowWithSchema(values.toArray, ReportSchema.region)
  }

  private def pinned(r: RegionRouting): Seq[Row] = {
    val layout = r.lease.layout
    r.pinned.map { key =>
      val values = Array[Any](key.text, layout.shardOf(key.hash), key.rows, key.seen)
      new GenericRowWithSchema(values, ReportSchema.pinned)
    }
  }

  private def operators(r: RegionRouting): Seq[Row] =
    r.barrier.decision.filter(_ => r.reason.isEmpty).toSeq.flatMap { decision =>
      val loads = r.load.ofOperators(decision.rows)
      r.spec.operators.zip(r.names).map { case (operator, name) =>
        val load = loads.get(operator.operatorId)
        val (rows, busyNs) = load.fold((0L, 0L))(l => (l.rows.sum, l.busyNs.sum))
        new GenericRowWithSchema(
          Array[Any](operator.operatorId, name, rows, busyNs / 1000000L),
          ReportSchema.operator
        )
      }
    }

  private def outcome(r: RegionRouting, d: Decision): String = {
    val description = r.outcome.fold("")(_.inWords(batch.theta, r.limited.batches, batch.foreseen))
    val unpinned = r.plans.unpinned.filter(_ => d.heaviestShard * d.proposed.tasks > batch.theta)
    val decided = if (batch.mode == Mode.Observe) s"observe: $description" else description
    (r.plans.placed ++ Some(decided) ++ unpinned ++ r.plans.pins).mkString("; ")
  }

  private def key(k: KeyShare): Row = {
    val busyError = k.busyShare.map(_ => k.busyError)
    val values = Array[Any](k.text, k.shard, k.busyShare.orNull, busyError.orNull, k.rowsShare, k.rowsError)
    new GenericRowWithSchema(values, ReportSchema.key)
  }
}

private[routing] object RoutingReport {

  /**
   * @param state
   *   State to report; None for a query whose state is not Penstock's
   */
  def row(
      mode: String,
      routingVersion: Any,
      shards: Any,
      reason: String,
      regions: Seq[Row],
      operators: Seq[Row],
      state: Option[StateReport],
      scaling: Option[String]
  ): Row = {
    val stores = state.toSeq.flatMap(s => s.lags.map(lag => store(lag, s.loads.getOrElse(lag.store, StateLoad.Empty))))
    val values =
      Array[Any](
        mode,
        routingVersion,
        shards,
        reason,
        regions,
        operators,
        stores,
        state.map(run).orNull,
        scaling.orNull
      )
    new GenericRowWithSchema(values, ReportSchema.report)
  }

  private def store(lag: SnapshotLag, load: StateLoad): Row = {
    val values = Seq[Any](lag.store.operatorId, lag.store.storeName) ++
      Metrics.read(MetricOutput.Store, StoreContent(lag, load)).map(_._2)
    new GenericRowWithSchema(values.toArray, ReportSchema.store)
  }

  private def run(state: StateReport): Row = {
    val activity = RunActivity(state.snapshotFiles, state.snapshotShards, state.snapshotBytes, state.filesDeleted)
    new GenericRowWithSchema(Metrics.read(MetricOutput.Run, activity).map(_._2).toArray[Any], ReportSchema.run)
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
