package org.apache.spark.sql.penstock.routing

import java.nio.file.Files

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.sql.execution.streaming.state.{RocksDBStateStoreProvider, StateStoreCommitValidationFailed}
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{DataFrame, Row, SparkSessionExtensions}

import Queries._
import io.penstock.PenstockStateStoreProvider
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.tags.Slow

/** Compares complete queries with Penstock's state to plain Spark, by row and batch. */
@Slow
class RoutedQueriesSuite extends AnyFunSuite with LocalSpark {
  override protected def extensions: Option[SparkSessionExtensions => Unit] =
    Some { e =>
      e.injectColumnar(session => new Foreign(() => session.conf.get("test.foreign", "false") == "true"))
      new RoutingExtensions()(e)
      e.injectColumnar(_ => new ColumnarRule {})
    }

  /** Inserts a node between exchange and state while it is enabled. */
  private class Foreign(enabled: () => Boolean) extends ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
      override def apply(plan: SparkPlan): SparkPlan =
        if (enabled()) plan.transformUp { case e: ShuffleExchangeExec => OpaqueExec.over(e) } else plan
    }
  }

  override protected def conf: Map[String, String] = Map(
    "spark.sql.streaming.checkpointFileManagerClass" -> classOf[io.penstock.LocalCheckpointFileManager].getName,
    "spark.sql.streaming.noDataMicroBatches.enabled" -> "true",
    "spark.sql.session.timeZone" -> "UTC",
    "spark.locality.wait" -> "0"
  )

  private val inputs = 4

  private def execution(q: StreamingQuery) = q.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution

  /** Rows by batch, without empty batches. */
  private def run(
      query: Query,
      options: Map[String, String],
      seen: StreamingQuery => Unit = _ => ()
  ): Map[Long, Seq[String]] = {
    val out = mutable.Map.empty[Long, Seq[String]]
    val in = events(spark)
    val checkpoint = Files.createTempDirectory(scratch, "c").toString
    def start(): StreamingQuery = query.build(in.toDF()).writeStream
      .outputMode(query.mode).options(options).option("checkpointLocation", checkpoint)
      .foreachBatch { (df: DataFrame, id: Long) =>
        out(id) = df.collect().map(_.toString).toSeq.sorted
      }.start()
    // Restarts before the third input: another run on the same checkpoint.
    Seq(0 until 2, 2 until inputs).foreach { part =>
      val q = start()
      try part.foreach { i =>
          in.addData(Queries.input(i))
          q.processAllAvailable()
        }
      finally {
        seen(q)
        q.stop()
      }
    }
    out.filter(_._2.nonEmpty).toMap
  }

  private def plain(query: Query): Map[Long, Seq[String]] = {
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", classOf[RocksDBStateStoreProvider].getName)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    run(query, Map.empty)
  }

  private def penstock(query: Query, options: Map[String, String], seen: StreamingQuery => Unit = _ => ()) = {
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", classOf[PenstockStateStoreProvider].getName)
    spark.conf.set("spark.sql.shuffle.partitions", "12")
    run(query, options, seen)
  }

  private val chaos = Map("penstock.policy" -> "chaos(11)", "penstock.tasks" -> "chaos(12)")

  private val aggregation = named("aggregation, update")

  // The suites in tests/integration compare all operators, with the whole plugin.
  Seq(aggregation, named("inner join"), named("deduplication, then aggregation by another key")).foreach { query =>
    test(s"${query.name}: rows match plain Spark under random bindings and numbers of tasks") {
      val expected = plain(query)
      assert(expected.nonEmpty)
      assert(penstock(query, chaos) == expected)
    }
  }

  Seq("off", "observe", "on").foreach { mode =>
    test(s"mode $mode: rows match plain Spark") {
      assert(penstock(aggregation, Map("penstock.mode" -> mode)) == plain(aggregation))
    }
  }

  test("Hadoop's settings lose their sources when Penstock runs a query, and only then") {
    val conf = spark.sparkContext.hadoopConfiguration
    Seq("off" -> true, "on" -> false).foreach { case (mode, keeps) =>
      conf.set("fs.some.setting", "1")
      penstock(aggregation, Map("penstock.mode" -> mode)): Unit
      assert((conf.getPropertySources("fs.some.setting") != null) == keeps && conf.get("fs.some.setting") == "1")
    }
  }

  test("concurrent tasks of a join on text-writing expressions do not share writers") {
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", classOf[PenstockStateStoreProvider].getName)
    spark.conf.set("spark.sql.shuffle.partitions", "12")
    val (left, right) = (events(spark), events(spark))
    val joined = left.toDF().selectExpr("v as a")
      .join(right.toDF().selectExpr("v as b"), expr("to_xml(struct(a)) = to_xml(struct(b as a))"))
    // One batch: as many tasks as inputs, two at a time.
    val (inputs, rows) = (4, 2500L)
    for (n <- 0 until inputs; in <- Seq(left, right))
      in.addData((n * rows until (n + 1) * rows).map(Event(0L, _, new java.sql.Timestamp(0))))
    var pairs = Seq.empty[Row]
    val query = joined.writeStream.option("checkpointLocation", Files.createTempDirectory(scratch, "c").toString)
      .foreachBatch((df: DataFrame, _: Long) => pairs ++= df.collect()).start()
    try query.processAllAvailable()
    finally query.stop()
    assert(pairs.map(_.getLong(0)).sorted == (0L until inputs * rows))
    assert(pairs.forall(p => p.getLong(0) == p.getLong(1)))
  }

  private def reports(q: StreamingQuery): Seq[Row] =
    q.recentProgress.toSeq.flatMap(p => Option(p.observedMetrics.get("penstock")))

  test("progress reports regions, tasks, rows, balance, moves and routing version in every mode") {
    def last(mode: String): Row = {
      var row: Row = null
      penstock(aggregation, Map("penstock.mode" -> mode), q => row = reports(q).last)
      row
    }
    def region(row: Row) = row.getSeq[Row](row.fieldIndex("regions")).head
    val on = last("on")
    assert(on.getAs[String]("mode") == "on" && on.getAs[Int]("shards") == 12 && on.getAs[Long]("routingVersion") == 0)
    assert(region(on).getAs[String]("operators") == "stateStoreSave" && region(on).getAs[Boolean]("routed"))
    assert(region(on).getAs[Int]("tasks") == 2)
    assert(region(on).getAs[Long]("rows") > 0 && region(on).getAs[Double]("imbalance") >= 1)
    assert(region(on).getAs[Double]("expectedImbalance") >= 1)
    val busyMs = region(on).getAs[Long]("busyMs")
    assert(busyMs >= 0 && region(on).getAs[Long]("interruptedMs") >= 0)
    // Two tasks. The achieved imbalance is not reported for a mean task time below 10 ms.
    val achieved = Option(region(on).getAs[java.lang.Double]("achievedImbalance"))
    assert(achieved.forall(_ >= 1) && achieved.nonEmpty == (busyMs >= 20), (achieved, busyMs))
    assert(region(on).getAs[Int]("shardsMoved") <= 12 && region(on).getAs[Any]("reason") == null)
    val off = last("off")
    assert(!region(off).getAs[Boolean]("routed") && region(off).getAs[String]("reason") == "mode is off")
    assert(region(off).getAs[Int]("tasks") == 12)
    val observe = last("observe")
    assert(observe.getAs[String]("mode") == "observe" && region(observe).getAs[Int]("tasks") == 2)
    assert(region(observe).getAs[Long]("rows") > 0)
  }

  test("progress is valid JSON that contains the report") {
    penstock(
      aggregation,
      Map.empty,
      q => {
        val json = q.lastProgress.json
        assert(json.contains("\"penstock\"") && json.contains("imbalance"), json)
      }
    )
  }

  test("explain shows the routed exchange and the report, and the reason for a single partition") {
    var routed, single = ""
    penstock(aggregation, Map.empty, q => routed = execution(q).executedPlan.treeString)
    assert(
      routed.contains("RoutedExchange shardpartitioning(k#") && routed.contains("tasks=2, shards=12, routingVersion=0"),
      routed
    )
    assert(routed.contains("Penstock mode on, routing version 0, 12 shards"), routed)
    penstock(
      named("global aggregation"),
      Map.empty,
      q => single = execution(q).executedPlan.treeString
    )
    assert(single.contains("ShardLease") && single.contains("takes one partition"), single)
  }

  test("a checkpoint of another provider is left alone, and progress says why") {
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", classOf[RocksDBStateStoreProvider].getName)
    run(
      aggregation,
      Map.empty,
      q => {
        val report = reports(q).last
        assert(report.getAs[String]("mode") == "off")
        assert(report.getAs[String]("reason") == s"checkpoint written by ${classOf[RocksDBStateStoreProvider].getName}")
        assert(!execution(q).executedPlan.exists(_.isInstanceOf[RoutedExchange]))
        assert(!execution(q).sparkSession.sessionState.conf.stateStoreUnloadOnCommit)
      }
    )
  }

  test("with an unknown node, rows match plain Spark, and progress and explain name the node") {
    val expected = plain(aggregation)
    spark.conf.set("test.foreign", "true")
    try {
      var report: Row = null
      var text = ""
      val rows = penstock(
        aggregation,
        chaos,
        q => {
          report = reports(q).last
          text = execution(q).executedPlan.treeString
        }
      )
      assert(rows == expected)
      val region = report.getSeq[Row](report.fieldIndex("regions")).head
      assert(region.getAs[Int]("tasks") <= 5 && region.getAs[Boolean]("routed") && region.getAs[Long]("rows") > 0)
      assert(region.getAs[String]("inTurn").contains("OpaqueExec") && region.getAs[Any]("reason") == null)
      assert(text.contains("ShardsInTurn tasks=") && text.contains("(Opaque"), text)
    } finally spark.conf.unset("test.foreign")
  }

  test("columnar rules that follow Penstock's are detected") {
    val routing = SessionRoutings.current.of(spark)
    assert(routing eq SessionRoutings.current.of(spark))
    assert(routing.followers.size == 1 && routing.followers.head.contains("RoutedQueriesSuite"))
  }

  test("stateless streams and batch queries have plain plans") {
    val in = MemoryStream[Long](org.apache.spark.sql.Encoders.scalaLong, spark)
    val q = in.toDF().selectExpr("value + 1").writeStream.format("noop").start()
    try {
      in.addData(1L, 2L)
      q.processAllAvailable()
      assert(!execution(q).executedPlan.exists(_.isInstanceOf[RoutingReportExec]))
      assert(q.lastProgress.observedMetrics.asScala.isEmpty)
    } finally q.stop()
    assert(!spark.range(10).groupBy("id").count().queryExecution.executedPlan.toString.contains("Penstock"))
  }

  private def failure(options: Map[String, String], stateful: Boolean, format: String): String = {
    val in = events(spark)
    val df = if (stateful) in.toDF().groupBy("k").count() else in.toDF()
    val w = df.writeStream.outputMode(if (stateful) "update" else "append").options(options)
      .option("checkpointLocation", Files.createTempDirectory(scratch, "c").toString)
    val q = if (format == "foreachBatch") w.foreachBatch((_: DataFrame, _: Long) => fail("a batch has run")).start()
    else w.format(format).queryName("q" + options.hashCode.abs).start()
    try {
      in.addData(Queries.input(0))
      intercept[org.apache.spark.sql.streaming.StreamingQueryException](q.processAllAvailable()).getMessage
    } finally q.stop()
  }

  for (format <- Seq("noop", "memory", "foreachBatch"); stateful <- Seq(true, false)) {
    test(
      s"an invalid option fails the query before its first batch: $format, ${if (stateful) "stateful" else "stateless"}"
    ) {
      spark.conf.set("spark.sql.streaming.stateStore.providerClass", classOf[PenstockStateStoreProvider].getName)
      val unknown = failure(Map("penstock.bindr" -> "sticky"), stateful, format)
      assert(unknown.contains("PENSTOCK_UNKNOWN_SETTING") && unknown.contains("penstock.bindr=sticky"), unknown)
      val range = failure(Map("PENSTOCK.Theta" -> "0.5"), stateful, format)
      assert(range.contains("PENSTOCK_INVALID_SETTING") && range.contains("0.5"), range)
    }
  }

  private def refused(conf: (String, String)*): String = {
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", classOf[PenstockStateStoreProvider].getName)
    val before = conf.map { case (k, _) => k -> spark.conf.getOption(k) }
    conf.foreach { case (k, v) => spark.conf.set(k, v) }
    try failure(Map.empty, stateful = true, "noop")
    finally before.foreach { case (k, v) => v.fold(spark.conf.unset(k))(spark.conf.set(k, _)) }
  }

  test("queries that Penstock cannot run are rejected before the first batch") {
    val shards = refused("spark.sql.shuffle.partitions" -> "65537")
    assert(shards.contains("PENSTOCK_SHARD_COUNT") && shards.contains("65537"), shards)
    val strict = refused("spark.sql.streaming.statefulOperator.useStrictDistribution" -> "false")
    assert(strict.contains("PENSTOCK_STRICT_DISTRIBUTION"), strict)
    val format = refused("spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2")
    assert(format.contains("PENSTOCK_CHECKPOINT_FORMAT"), format)
  }

  test("a foreachBatch function that reads only a part of a batch fails, as in plain Spark") {
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", classOf[PenstockStateStoreProvider].getName)
    spark.conf.set("spark.sql.shuffle.partitions", "12")
    val in = events(spark)
    val q = in.toDF().groupBy("k").count().writeStream.outputMode("update")
      .option("checkpointLocation", Files.createTempDirectory(scratch, "c").toString)
      .foreachBatch((df: DataFrame, _: Long) => df.limit(1).collect(): Unit).start()
    try {
      in.addData(Queries.input(0))
      val e = intercept[org.apache.spark.sql.streaming.StreamingQueryException](q.processAllAvailable())
      val causes = Iterator.iterate[Throwable](e)(_.getCause).takeWhile(_ != null).toSeq
      assert(causes.exists(_.isInstanceOf[StateStoreCommitValidationFailed]), causes)
    } finally q.stop()
  }
}
