package org.apache.spark.sql.penstock.routing

import java.nio.file.Files

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOperator, StreamingDeduplicateExec}
import org.apache.spark.sql.penstock.lease.OperatorKind

import Queries._
import org.scalatest.funsuite.AnyFunSuite

/** A node of a plugin that Penstock does not know. It passes rows on. */
final case class ForeignExec(child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

/** Another unknown node. It expects as many partitions of its input as there were when it was planned. */
final case class OpaqueExec(child: SparkPlan, others: Int) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override protected def doExecute(): RDD[InternalRow] =
    child.execute().zipPartitions(sparkContext.parallelize(Seq.empty[Int], others))((rows, _) => rows)
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

object OpaqueExec {
  def over(child: SparkPlan): OpaqueExec = OpaqueExec(child, child.outputPartitioning.numPartitions)
}

/** Plans of real queries, as Spark plans them for its own state store, are divided into regions. */
class RegionsSuite extends AnyFunSuite with LocalSpark {
  private val shards = 4
  @volatile private var planned: Vector[SparkPlan] = Vector.empty

  override protected def conf: Map[String, String] = Map(
    "spark.sql.shuffle.partitions" -> shards.toString,
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.streaming.stateStore.providerClass" ->
      classOf[org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider].getName,
    "spark.sql.streaming.checkpointFileManagerClass" -> classOf[io.penstock.LocalCheckpointFileManager].getName
  )

  /** Captures plans at the point where Penstock's own rule sees them. */
  override protected def extensions: Option[SparkSessionExtensions => Unit] = Some(_.injectColumnar(_ =>
    new ColumnarRule {
      override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
        override def apply(plan: SparkPlan): SparkPlan = {
          if (plan.exists { case o: StatefulOperator => o.stateInfo.isDefined; case _ => false }) planned :+= plan
          plan
        }
      }
    }
  ))

  private def plan(name: String): SparkPlan = {
    val query = named(name)
    planned = Vector.empty
    val in = events(spark)
    val q = query.build(in.toDF()).writeStream.outputMode(query.mode).format("noop")
      .option("checkpointLocation", Files.createTempDirectory(scratch, "c").toString).start()
    try {
      in.addData(Queries.input(0, rows = 5))
      q.processAllAvailable()
      planned.head
    } finally q.stop()
  }

  private def only(plan: SparkPlan): Region = {
    val regions = Regions.of(plan)
    assert(regions.size == 1)
    regions.head
  }

  private def exchanges(region: Region): Int = region.route match {
    case Route.AtBarrier(es, Nil) => es.size
    case other => fail(s"not routed: $other")
  }

  private def reason(plan: SparkPlan): String = only(plan).route match {
    case Route.InTurn(why) => why
    case other => fail(s"expected a region whose tasks run shards in turn, found $other")
  }

  /**
   * Reason why tasks run the shards of a region in turn, the number of exchanges below those inputs, and of other
   * exchanges.
   */
  private def inTurn(plan: SparkPlan): (String, Int, Int) = only(plan).route match {
    case route @ Route.AtBarrier(exchanges, inputs) =>
      (route.inTurnReason.getOrElse(""), inputs.map(_.exchanges.size).sum, exchanges.size)
    case other => fail(s"expected a routed region, found $other")
  }

  private lazy val aggregation = plan("aggregation, update")

  /** The aggregation with its exchange changed. */
  private def fedBy(change: ShuffleExchangeExec => SparkPlan): SparkPlan =
    aggregation.transformUp { case e: ShuffleExchangeExec => change(e) }

  test("an aggregation is one region with one exchange; restore and save are one operator") {
    val r = only(aggregation)
    assert(exchanges(r) == 1 && RoutingRule.names(r) == Seq("stateStoreSave"))
    val spec = RoutingRule.spec(r)
    val operator = spec.operators.head
    assert(
      spec.region == 0 && !spec.single && spec.operators.size == 1 && operator.kind == OperatorKind.WholeKey && operator.storeNames == Seq(
        "default"
      )
    )
  }

  test("each kind of operator has its stores") {
    def operator(name: String) = RoutingRule.spec(only(plan(name))).operators.head
    assert(operator("session windows").kind == OperatorKind.SessionWindow)
    assert(operator("transformWithState").kind == OperatorKind.TransformWithState)
    val join = operator("inner join")
    assert(join.kind.isInstanceOf[OperatorKind.Join] && join.storeNames.nonEmpty)
  }

  test("both inputs of a join belong to its region, and operators of one stage share a region") {
    assert(Regions.of(plan("inner join")).map(exchanges) == Seq(2))
    val r = only(plan("deduplication and aggregation by one key"))
    assert(exchanges(r) == 1 && RoutingRule.names(r).size == 2 && RoutingRule.spec(r).region == 0)
    assert(RoutingRule.lowest(r).size == 1)
  }

  test("operators with different keys have a region each") {
    val regions = Regions.of(plan("deduplication, then aggregation by another key"))
    assert(regions.map(exchanges) == Seq(1, 1))
    assert(regions.map(RoutingRule.spec(_).region).toSet == Set(0, 1))
  }

  test("an exchange that Spark placed for a static join is routed with the state above it") {
    assert(Regions.of(plan("aggregation joined with a static table")).map(exchanges) == Seq(2))
    val r = only(plan("aggregation of a join with a static table by the same key"))
    assert(exchanges(r) == 2)
    assert(r.inputs.forall(_.shuffleOrigin == ENSURE_REQUIREMENTS), "no exchange was required by the operator")
  }

  test("a concatenating union keeps its branches in separate regions") {
    assert(Regions.of(plan("union of two stateful branches")).map(exchanges).sum == 2)
  }

  test("unused initial state does not count as an input") {
    assert(Regions.of(plan("flatMapGroupsWithState")).map(exchanges) == Seq(1))
    assert(Regions.of(plan("transformWithState")).map(exchanges) == Seq(1))
  }

  test("operators without a key have a single partition") {
    Seq("global aggregation", "streaming limit").foreach { name =>
      val r = only(plan(name))
      assert(r.route == Route.Single && RoutingRule.spec(r).single)
    }
  }

  test("coalesced output is allowed, coalesced input is not") {
    assert(Regions.of(plan("aggregation, coalesced")).map(exchanges) == Seq(1))
    assert(reason(fedBy(e => CoalesceExec(2, e))).contains("Coalesce"))
  }

  test("an unknown input is read in turn if it is partitioned by shard") {
    val (below, counted, routed) = inTurn(fedBy(OpaqueExec.over))
    assert(below.contains("OpaqueExec") && counted == 1 && routed == 0)
    val (leaf, _, _) = inTurn(fedBy { e =>
      RDDScanExec(e.output, spark.sparkContext.emptyRDD, "Leaf", e.outputPartitioning)
    })
    assert(leaf.contains("Scan Leaf feeds it without an exchange"), leaf)
  }

  test("an unknown node above all state ends the region, unless another input is zipped with it") {
    val counts = aggregation.children.head
    assert(inTurn(OpaqueExec.over(counts)) == ("", 0, 1))
    assert(inTurn(ProjectExec(counts.output, OpaqueExec.over(OpaqueExec.over(counts)))) == ("", 0, 1))
    val zipped = SortMergeJoinExec(
      counts.output.take(1),
      counts.output.take(1),
      Inner,
      None,
      OpaqueExec.over(counts),
      LocalTableScanExec(counts.output, Nil, None)
    )
    assert(reason(zipped).contains("OpaqueExec"))
  }

  test("an unknown node between two operators prevents routing") {
    val between = plan("deduplication and aggregation by one key").transformUp { case d: StreamingDeduplicateExec =>
      OpaqueExec.over(d)
    }
    assert(reason(between).contains("OpaqueExec"))
  }

  test("an unknown node keeps partitions if a probe shows so for any number of partitions") {
    val between = plan("deduplication and aggregation by one key")
    def around(node: SparkPlan => SparkPlan) = between.transformUp {
      case d: StreamingDeduplicateExec => node(d)
      case e: ShuffleExchangeExec => node(e)
    }
    assert(inTurn(around(ForeignExec(_))) == (("", 0, 1)))
    assert(inTurn(around(c => ForeignExec(ForeignExec(c)))) == (("", 0, 1)))
    assert(reason(around(OpaqueExec.over)).contains("OpaqueExec"))
  }

  test("a probe computes nothing, and nodes that fail or change partitions do not keep them") {
    val counts = aggregation.children.head
    def keeps(node: SparkPlan) = PartitionProbe.keepsPartitions(node)
    assert(keeps(ForeignExec(counts)) && !keeps(OpaqueExec.over(counts)))
    assert(!keeps(CoalesceExec(2, counts)) && !keeps(LocalTableScanExec(counts.output, Nil, None)))
    assert(!keeps(CollectLimitExec(3, counts)))
    assert(!keeps(SortMergeJoinExec(counts.output.take(1), counts.output.take(1), Inner, None, counts, counts)))
  }

  test("nodes that change partitions end a region as an exchange does") {
    val counts = aggregation.children.head
    val order = Seq(SortOrder(counts.output.head, Ascending))
    Seq(
      TakeOrderedAndProjectExec(3, order, counts.output, counts),
      CollectLimitExec(3, counts),
      CollectTailExec(3, counts),
      CoalesceExec(2, counts)
    ).foreach(node => assert(inTurn(node) == ("", 0, 1)))
  }

  test("an input without a plain hash exchange is named as the reason") {
    assert(reason(fedBy(e => LocalTableScanExec(e.output, Nil, None))).contains("LocalTableScan"))
    assert(reason(fedBy(_.copy(outputPartitioning =
      RoundRobinPartitioning(shards)
    ))).contains("RoundRobinPartitioning"))
    assert(reason(fedBy(e =>
      e.copy(outputPartitioning = RangePartitioning(Seq(SortOrder(e.output.head, Ascending)), shards))
    )).contains("RangePartitioning"))
    assert(reason(
      fedBy(e => e.copy(outputPartitioning = HashPartitioning(e.output.take(1), shards + 1)))
    ).contains("5 partitions"))
    assert(reason(fedBy(e => UnionExec(Seq(e, e.child)))).contains("Union"))
  }
}
