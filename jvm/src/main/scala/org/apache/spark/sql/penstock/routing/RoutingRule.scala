package org.apache.spark.sql.penstock.routing

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  StatefulOpClusteredDistribution,
  UnknownPartitioning
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.V2TableWriteExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode, UnionExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease.{OperatorKind, OperatorLease, RegionSpec}
import org.apache.spark.sql.penstock.report.ReportName
import org.apache.spark.sql.penstock.telemetry.{MeterExec, MeteredReader}

import io.penstock.conf.{ApplicationSetup, Mode}

/**
 * Routes the stateful regions of a micro-batch's plan. Exchanges that feed a region become routed exchanges; other
 * inputs are read shard by shard. Regions that cannot be routed get a node that leases shard p to partition p, and a
 * node that runs these partitions in turn. The report is added at the top, but below a node that writes the batch. The
 * rule runs as a columnar rule, after Spark has placed its exchanges. It changes only streaming plans whose state
 * belongs to Penstock's provider.
 */
final private[routing] class RoutingRule(routing: SessionRouting) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    // transformWithState in a batch query also has state, but no checkpoint.
    val operators = plan.collect { case o: StatefulOperator if o.stateInfo.exists(_.checkpointLocation.nonEmpty) => o }
    // Real-Time Mode accepts only Spark's RocksDB provider, and checks the plan against its own list of nodes.
    val ignore = operators.isEmpty || plan.exists {
      case _: RoutingReportExec => true
      case n => n.getClass.getSimpleName == "RealTimeStreamScanExec"
    }
    if (ignore) plan
    else if (SQLConf.get.stateStoreProviderClass != ApplicationSetup.Provider)
      leaveAlone(plan, operators.head.getStateInfo)
    else route(plan, operators.head.getStateInfo)
  }

  private def leaveAlone(plan: SparkPlan, info: StatefulOperatorStateInfo): SparkPlan = {
    val reason = s"checkpoint written by ${SQLConf.get.stateStoreProviderClass}"
    routing.tellOnce(info.queryRunId, reason)
    withReport(plan, new LeftAlone(reason))
  }

  private def route(plan: SparkPlan, info: StatefulOperatorStateInfo): SparkPlan = {
    Preconditions.check(SQLConf.get, info.numPartitions)
    routing.beforeBatch()
    val regions = Regions.of(plan)
    val planned = regions.map(r => PlannedRegion(RoutingRule.spec(r), RoutingRule.names(r), routeOf(r)))
    val batch = routing.run(info).batch(info.storeVersion, info.numPartitions, planned)
    val rewrite = new Rewrite
    regions.zip(planned).foreach { case (region, p) => rewrite.add(region, p.route, batch.region(p.spec.region)) }
    withReport(rewrite(plan), new BatchReport(batch))
  }

  private def routeOf(region: Region): Route = (region.route, routing.settings.mode) match {
    case (_: Route.AtBarrier, Mode.Off) => Route.ByShard("mode is off")
    case (atBarrier: Route.AtBarrier, Mode.Observe) => atBarrier.inTurnReason.fold[Route](atBarrier)(Route.ByShard)
    case (Route.InTurn(why), Mode.Off | Mode.Observe) => Route.ByShard(why)
    case (route, _) => route
  }

  private def withReport(plan: SparkPlan, report: RoutingReport): SparkPlan = {
    val name = ReportName.beside(plan)
    plan match {
      // The write must stay on top: Spark looks for it there.
      case w: V2TableWriteExec => w.withNewChildren(Seq(new RoutingReportExec(name, w.query, report)))
      case p => new RoutingReportExec(name, p, report)
    }
  }

  /** Replaces nodes. Nodes are compared by identity, because equal nodes may belong to different regions. */
  private class Rewrite {
    private val exchanges = new IdentityHashMap[SparkPlan, RegionRouting]()
    private val leased = new IdentityHashMap[SparkPlan, RegionRouting]()
    private val unions = new IdentityHashMap[SparkPlan, RegionRouting]()
    private val byShard = new IdentityHashMap[SparkPlan, RegionRouting]()
    private val inTurn = new IdentityHashMap[SparkPlan, SparkPlan => SparkPlan]()
    private val readers = new IdentityHashMap[SparkPlan, Long]()
    private val metered = new IdentityHashMap[SparkPlan, RegionRouting]()

    def add(region: Region, route: Route, routing: RegionRouting): Unit = {
      region.nodes.foreach { case u: UnionExec => unions.put(u, routing); case _ => }
      route match {
        case Route.AtBarrier(inputs, others) =>
          inputs.foreach(exchanges.put(_, routing))
          others.foreach { o =>
            o.exchanges.foreach(byShard.put(_, routing))
            inTurn.put(o.node, ShardsInTurnExec.below(_, plan(routing, byShard = false)))
          }
          region.operators.foreach { o =>
            metered.put(o, routing)
            o.children.flatMap(RoutingRule.feeding).foreach(readers.put(_, o.getStateInfo.operatorId))
          }
        case _ => RoutingRule.lowest(region).foreach(leased.put(_, routing))
      }
      if (route.isInstanceOf[Route.InTurn]) {
        val tasks = UnknownPartitioning(routing.batch.routingVersion.tasks(routing.spec.region))
        inTurn.put(RoutingRule.highest(region), ShardsInTurnExec.above(_, tasks, routing))
      }
    }

    def apply(node: SparkPlan): SparkPlan = {
      val children = node.children.map(apply)
      val region = leased.get(node)
      val below =
        if (region == null) children
        else lease(children.head, region) +: children.tail
      val timed = Option(metered.get(node)).fold(below)(meter(node, below, _))
      val changed = if (timed == node.children) node else node.withNewChildren(timed)
      val replaced = changed match {
        case e: ShuffleExchangeExec if exchanges.containsKey(node) =>
          val reader = readers.getOrDefault(node, ShardPartitioning.NoReader)
          routed(e, plan(exchanges.get(node), byShard = false), reader)
        case e: ShuffleExchangeExec if byShard.containsKey(node) =>
          routed(e, plan(byShard.get(node), byShard = true), ShardPartitioning.NoReader)
        case u: UnionExec if unions.containsKey(node) => lease(u, unions.get(node))
        case t: TransformWithStateExec => new SwappedTransformWithState(t)
        case t: TransformWithStateInPySparkExec => new SwappedTransformWithStateInPySpark(t)
        case n => n
      }
      Option(inTurn.get(node)).fold(replaced)(_(replaced))
    }

    /**
     * Adds meters to the inputs of an operator. Inputs from a routed exchange need none, because the exchange times its
     * rows.
     */
    private def meter(operator: SparkPlan, inputs: Seq[SparkPlan], region: RegionRouting): Seq[SparkPlan] =
      inputs.zip(operator.requiredChildDistribution).map {
        case (input, clustered: StatefulOpClusteredDistribution) if !input.isInstanceOf[RoutedExchange] =>
          MeterExec(clustered.expressions, RoutingRule.reader(operator, input), input)(region.load)
        case (input, _) => input
      }

    private def lease(below: SparkPlan, region: RegionRouting): SparkPlan =
      LeaseExec(below, region.reason.getOrElse(""))(region)

    private def plan(region: RegionRouting, byShard: Boolean): RegionPlan = {
      val batch = region.batch
      val id = region.spec.region
      val tasks = if (byShard || batch.mode == Mode.Observe) batch.spec.shardCount else batch.routingVersion.tasks(id)
      val layout = region.lease.layout
      new RegionPlan(
        batch.spec.runId,
        batch.spec.batchId,
        id,
        tasks,
        layout,
        batch.routingVersion.number,
        byShard,
        region
      )
    }

    private def routed(exchange: ShuffleExchangeExec, plan: RegionPlan, reader: Long): SparkPlan = {
      val keys = exchange.outputPartitioning.asInstanceOf[HashPartitioning].expressions
      RoutedExchange(exchange, new ShardPartitioning(keys, plan, reader))
    }
  }
}

private[routing] object RoutingRule {

  def names(region: Region): Seq[String] =
    region.operators.collect { case w: StateStoreWriter => w }.sortBy(_.getStateInfo.operatorId).map(_.shortName)

  def spec(region: Region): RegionSpec = {
    val writers = region.operators.collect { case w: StateStoreWriter => w }.sortBy(_.getStateInfo.operatorId)
    val operators = writers.map(w => OperatorLease(w.getStateInfo.operatorId, kind(w), w.stateStoreNames))
    RegionSpec(operators.head.operatorId, region.route == Route.Single, operators)
  }

  private def reader(operator: SparkPlan, input: SparkPlan): MeteredReader = {
    val id = idOf(operator).get
    MeteredReader(id, takesGroups(operator), feeding(input).flatMap(idOf(_)).exists(_ != id))
  }

  private def idOf(node: SparkPlan): Option[Long] = node match {
    case o: StatefulOperator => o.stateInfo.map(_.operatorId)
    case _ => None
  }

  /** The nearest stateful operators and exchanges below a node, or the node itself, that its rows come from. */
  private def feeding(node: SparkPlan): Seq[SparkPlan] = node match {
    case o: StatefulOperator if o.stateInfo.isDefined => Seq(o)
    case e: ShuffleExchangeLike => Seq(e)
    case n => n.children.flatMap(feeding)
  }

  /** Whether an operator calls a user function on the task's own thread with all rows of a key. */
  private def takesGroups(operator: SparkPlan): Boolean = operator match {
    case _: FlatMapGroupsWithStateExec | _: TransformWithStateExec => true
    case _ => false
  }

  private def kind(operator: StateStoreWriter): OperatorKind = operator match {
    case j: StreamingSymmetricHashJoinExec => OperatorKind.Join(j.stateFormatVersion)
    case _: TransformWithStateExec | _: TransformWithStateInPySparkExec => OperatorKind.TransformWithState
    case _: SessionWindowStateStoreSaveExec => OperatorKind.SessionWindow
    case _ => OperatorKind.WholeKey
  }

  /**
   * The node of a region above which few tasks can run its partitions in turn. It is as low as possible: all nodes
   * above it only pass rows through one input.
   */
  def highest(region: Region): SparkPlan = {
    def descend(node: SparkPlan): SparkPlan = node match {
      case _: StatefulOperator => node
      case n: UnaryExecNode if region.nodes.exists(_ eq n.child) && NodeKind.of(n).contains(NodeKind.KeepsPartitions) =>
        descend(n.child)
      case _ => node
    }
    descend(region.nodes.head)
  }

  /**
   * Stateful operators of a region whose first input contains no stateful operator of the region. Their lease also
   * covers the operators above.
   */
  def lowest(region: Region): Seq[SparkPlan] = {
    val own = new IdentityHashMap[SparkPlan, Unit]()
    region.nodes.foreach(own.put(_, ()))
    def holdsState(node: SparkPlan): Boolean =
      own.containsKey(node) && (node.isInstanceOf[StatefulOperator] || node.children.exists(holdsState))
    region.operators.filterNot(o => holdsState(o.children.head))
  }
}
