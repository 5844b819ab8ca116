package org.apache.spark.sql.penstock.telemetry

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.TaskContext
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.{MemoryStream, StreamingQueryWrapper}
import org.apache.spark.sql.functions.{col, expr, udf}
import org.apache.spark.sql.penstock.report.ReportRows
import org.apache.spark.sql.penstock.routing.{LocalSpark, RoutedExchange, RoutingExtensions}
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.{DataFrame, Dataset, SparkSessionExtensions}

import io.penstock.PenstockStateStoreProvider
import io.penstock.sharding.Layout
import io.penstock.telemetry.TaskLoad
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.tags.Slow

/** The measurements of tasks, in complete queries. */
@Slow
class TelemetrySuite extends AnyFunSuite with LocalSpark {
  import TelemetrySuite._
  private val shards = 12
  private val rowsPerKey = 20
  private val keys = 40

  override protected def extensions: Option[SparkSessionExtensions => Unit] =
    Some(new RoutingExtensions()(_))

  override protected def conf: Map[String, String] = Map(
    "spark.sql.streaming.stateStore.providerClass" -> classOf[PenstockStateStoreProvider].getName,
    "spark.sql.shuffle.partitions" -> shards.toString,
    "spark.sql.streaming.noDataMicroBatches.enabled" -> "false"
  )

  private def run(
      build: Dataset[Long] => DataFrame,
      batches: Int = 3,
      options: Map[String, String] = Map.empty,
      more: Seq[Long] = Nil,
      mode: String = "update"
  ): (RegionLoad, Seq[StreamingQueryProgress]) = {
    val in = MemoryStream[Long](Encoders.scalaLong, spark)
    val query = build(in.toDS()).writeStream
      .outputMode(mode).format("noop")
      .options(options)
      .option("checkpointLocation", java.nio.file.Files.createTempDirectory(scratch, "c").toString)
      .start()
    try {
      (1 to batches).foreach { _ =>
        in.addData((0 until keys * rowsPerKey).map(_ % keys.toLong) ++ more)
        query.processAllAvailable()
      }
      val plan = query.asInstanceOf[StreamingQueryWrapper].streamingQuery.lastExecution.executedPlan
      val load = plan.collectFirst { case e: RoutedExchange => e.load }.get
      // An idle query reports progress without a batch now and then.
      (load, query.recentProgress.toSeq.filter(_.durationMs.containsKey("addBatch")))
    } finally query.stop()
  }

  /** The shard of a key, by Penstock's hash of a long. */
  private def shardOf(key: Long): Int = {
    import org.apache.spark.sql.catalyst.InternalRow
    import org.apache.spark.sql.catalyst.expressions.BoundReference
    import org.apache.spark.sql.types.LongType
    ShardHash(Seq(BoundReference(0, LongType, nullable = false)), Layout(shards)).of(InternalRow(key))
  }

  test("the time of a user's function is charged to its key's shard, and no time twice") {
    val (load, _) = run(withSlowKey)
    val tasks = load.tasks
    val busy = TaskLoad.busyOfShards(tasks, shards)
    val slow = shardOf(slowKey)
    // The first row of a task may be charged like any other.
    assert(busy(slow) >= (rowsPerKey - 1) * slowNs, busy.mkString(" "))
    assert(busy(slow) == busy.max, busy.mkString(" "))
    assert(tasks.size == 2)
    val slowTask = tasks.find(_.shards.contains(slow)).get
    assert(slowTask.busyNs.sum <= slowTask.totalNs && slowTask.waitNs < slowTask.totalNs, slowTask)
    val heaviest = tasks.flatMap(_.heavyKeys).maxBy(_.busyNs)
    assert((heaviest.text, heaviest.shard) == ((slowKey.toString, slow)))
    // One reading may measure something else.
    assert(heaviest.busyNs - heaviest.busyErrorNs >= (rowsPerKey - 3) * slowNs, heaviest)
  }

  for (
    (operator, build) <-
      Seq("flatMapGroupsWithState" -> countedThenSlow _, "transformWithState" -> processedThenSlow _);
    // The highest key is the last one of its task.
    slow <- Seq(slowKey, keys - 1L)
  )
    test(s"$operator: time spent after all rows of key $slow were read is charged to that key") {
      val (load, _) = run(build(slow, _))
      val busy = TaskLoad.busyOfShards(load.tasks, shards)
      val all = rowsPerKey * slowNs
      assert(busy(shardOf(slow)) >= 0.95 * all && busy.sum < 2 * all, busy.mkString(" "))
      assert(load.tasks.flatMap(_.heavyKeys).maxBy(_.busyNs).text == slow.toString)
    }

  test("all rows of a frequent key are charged although it is the first key of its task") {
    // Far more than a pause of the machine can add to another key.
    val many = 200 * rowsPerKey
    val (load, _) = run(countedThenSlow(-1, _), more = Seq.fill(many)(0L))
    val busy = TaskLoad.busyOfShards(load.tasks, shards)
    assert(busy(shardOf(0)) >= 0.95 * many * usualNs, busy.mkString(" "))
    val heaviest = load.tasks.flatMap(_.heavyKeys).maxBy(_.busyNs)
    assert(heaviest.text == "0" && heaviest.busyNs >= 0.9 * many * usualNs, heaviest)
  }

  test("work of a task at its first row is not charged to that row's key") {
    val (load, _) = run(withSlowStart, batches = 1)
    assert(load.tasks.size == 2 && load.tasks.forall(_.totalNs >= startNs), load.tasks)
    val busy = TaskLoad.busyOfShards(load.tasks, shards)
    assert(busy.sum >= (keys * rowsPerKey - 2) * usualNs && busy.sum < startNs, busy.mkString(" "))
  }

  test("later batches are bound by cost: the expensive shard's task has few rows") {
    val (_, progress) = run(withSlowKey, batches = 8)
    val regions = progress.map(_.observedMetrics.get("penstock").getSeq[org.apache.spark.sql.Row](4).head)
    val (first, last) = (regions.head, regions.last)
    // By rows the balance would be 1.05. By cost the slow key is the limit, and its task gets little else.
    assert(first.getAs[Double]("imbalance") < 1.3)
    assert(last.getAs[Double]("imbalance") > 1.5, last)
    assert(last.getAs[Double]("expectedImbalance") > 1.1, last)
    assert(last.getAs[String]("decision").contains(s"one key is the limit: $slowKey has "), last)
  }

  Seq[(String, Dataset[Long] => DataFrame)](
    "aggregation" -> (_.groupBy("value").count()),
    "deduplication" -> (_.dropDuplicates("value").toDF())
  ).foreach { case (name, build) =>
    test(s"$name: only shards with rows are measured as busy") {
      val (load, progress) = run(build)
      val busy = TaskLoad.busyOfShards(load.tasks, shards)
      val expected = (0L until keys.toLong).map(shardOf).toSet
      val seen = busy.indices.filter(busy(_) > 0).toSet
      assert(seen.nonEmpty && seen.subsetOf(expected), busy.mkString(" "))
      assert(load.tasks.forall(_.totalNs > 0))
      assert(progress.last.observedMetrics.get("penstock") != null)
    }
  }

  for ((where, slowFirst) <- Seq("first" -> true, "second" -> false))
    test(s"time is charged to the right operator of a region: the $where one") {
      val slowly = udf { (v: Long) => workNs(100 * usualNs); v >= 0 }.asNondeterministic()
      val (load, progress) = run(
        in => {
          val once = in.toDF().dropDuplicates("value")
          if (slowFirst) once.filter(slowly(col("value"))).dropDuplicates("value")
          else once.dropDuplicates("value").filter(slowly(col("value")))
        },
        batches = 1
      )
      val Seq(below, above) = ReportRows.operators(progress.last.observedMetrics.get("penstock"))
        .sortBy(-_.getAs[Long]("rows")): @unchecked
      assert(below.getAs[Long]("rows") == keys * rowsPerKey && above.getAs[Long]("rows") == keys)
      assert(below.getAs[String]("name") == "dedupe" && above.getAs[String]("name") == "dedupe")
      val loads = load.ofOperators(Array.empty)
      val (first, second) = (loads(below.getAs[Long]("operator")), loads(above.getAs[Long]("operator")))
      val expected = (0L until keys.toLong).groupBy(shardOf).view.mapValues(_.size.toLong).toMap.withDefaultValue(0L)
      assert(second.rows.toSeq == (0 until shards).map(expected))
      assert(first.rows.toSeq == (0 until shards).map(expected(_) * rowsPerKey))
      val (slow, quick) = if (slowFirst) (first, second) else (second, first)
      assert(slow.busyNs.sum >= keys * 50 * usualNs && slow.busyNs.sum > 4 * quick.busyNs.sum, (slow, quick))
      // The operators' time does not exceed the measured time, and hardly any is lost.
      val (booked, divided) = (load.busyOfShardsNs.sum, slow.busyNs.sum + quick.busyNs.sum)
      assert(divided <= booked && divided > 0.99 * booked)
    }

  test("rows are counted at each operator of a region, across several exchanges") {
    val (_, progress) = run(
      in => {
        val left = in.toDF("l").dropDuplicates("l")
        val right = in.toDF("r").filter("r % 2 = 0").dropDuplicates("r")
        left.join(right, expr("l = r"))
      },
      batches = 1,
      mode = "append"
    )
    val report = progress.last.observedMetrics.get("penstock")
    assert(ReportRows.regions(report).size == 1)
    val operators = ReportRows.operators(report)
    val rows = operators.map(o => o.getAs[String]("name") -> o.getAs[Long]("rows")).groupBy(_._1)
    assert(rows("dedupe").map(_._2).sorted == Seq(keys * rowsPerKey / 2, keys * rowsPerKey))
    // The filter applies to both sides.
    assert(rows("symmetricHashJoin").map(_._2) == Seq(keys))
    assert(operators.size == 3)
  }

  test("hidden keys are shown by their hash, in the report and in the decision") {
    val (load, progress) = run(withSlowKey, batches = 8, Map("penstock.report.keys" -> "false"))
    val heaviest = load.tasks.flatMap(_.heavyKeys).maxBy(_.busyNs)
    assert(heaviest.text == f"hash ${heaviest.hash}%08x" && heaviest.shard == shardOf(slowKey))
    assert(progress.last.json.contains(s"one key is the limit: ${heaviest.text} has "), progress.last.json)
  }

  test("a finished task leaves no meter behind") {
    run(withSlowKey, batches = 1)
    assert(TaskMeter.size == 0)
  }
}

private object TelemetrySuite {
  val slowKey = 3L
  val slowNs = 30000000L

  /** Slow enough that every row is timed and the charged time is exact. */
  val usualNs = 50000L

  /** Far more than all rows take. */
  val startNs = 2000000000L
  private val started = ConcurrentHashMap.newKeySet[Long]()

  def withSlowKey(in: Dataset[Long]): DataFrame = in
    .groupByKey(v => v)(Encoders.scalaLong)
    .flatMapGroupsWithState[Long, Long](OutputMode.Update(), GroupStateTimeout.NoTimeout()) {
      (key: Long, rows: Iterator[Long], state: GroupState[Long]) =>
        rows.foreach(_ => workNs(if (key == slowKey) slowNs else usualNs))
        state.update(key)
        Iterator(key)
    }(Encoders.scalaLong, Encoders.scalaLong).toDF()

  /** Reads all rows of a key and then spends its time. */
  def countedThenSlow(slow: Long, in: Dataset[Long]): DataFrame = in
    .groupByKey(v => v)(Encoders.scalaLong)
    .flatMapGroupsWithState[Long, Long](OutputMode.Update(), GroupStateTimeout.NoTimeout()) {
      (key: Long, rows: Iterator[Long], state: GroupState[Long]) =>
        workNs(rows.size * (if (key == slow) slowNs else usualNs))
        state.update(key)
        Iterator(key)
    }(Encoders.scalaLong, Encoders.scalaLong).toDF()

  /** As `countedThenSlow`, with state that is used only at the end. */
  def processedThenSlow(slow: Long, in: Dataset[Long]): DataFrame = in
    .groupByKey(v => v)(Encoders.scalaLong)
    .transformWithState(new SlowAtTheEnd(slow), TimeMode.None(), OutputMode.Update())(Encoders.scalaLong)
    .toDF()

  class SlowAtTheEnd(slow: Long) extends StatefulProcessor[Long, Long, Long] {
    @transient private var rows: ValueState[Long] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      rows = getHandle.getValueState[Long]("rows", Encoders.scalaLong, TTLConfig.NONE)

    override def handleInputRows(key: Long, input: Iterator[Long], timers: TimerValues): Iterator[Long] = {
      val count = input.size
      workNs(count * (if (key == slow) slowNs else usualNs))
      rows.update(count.toLong)
      Iterator(key)
    }
  }

  /** Spends time at the first row of each task, as operators do. Keys are sorted, so this row has the lowest key. */
  def withSlowStart(in: Dataset[Long]): DataFrame = in
    .groupByKey(v => v)(Encoders.scalaLong)
    .flatMapGroupsWithState[Long, Long](OutputMode.Update(), GroupStateTimeout.NoTimeout()) {
      (key: Long, rows: Iterator[Long], state: GroupState[Long]) =>
        val task = TaskContext.get().taskAttemptId()
        if (started.add(task)) workNs(startNs)
        rows.foreach(_ => workNs(usualNs))
        state.update(key)
        Iterator(key)
    }(Encoders.scalaLong, Encoders.scalaLong).toDF()

  /** Measured in CPU time, because time that a busy machine takes from a thread is not charged. */
  private def workNs(ns: Long): Unit = {
    val until = threads.getCurrentThreadCpuTime() + ns
    while (threads.getCurrentThreadCpuTime() < until) Thread.onSpinWait()
  }

  private def threads = java.lang.management.ManagementFactory.getThreadMXBean
}
