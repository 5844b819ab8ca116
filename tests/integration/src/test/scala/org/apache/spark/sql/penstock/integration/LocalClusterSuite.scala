package org.apache.spark.sql.penstock.integration

import java.nio.file.{Files, Path}
import java.util.concurrent.locks.LockSupport

import scala.collection.mutable.Buffer
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.integration.cases._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.{GroupState, StreamingQuery, StreamingQueryProgress}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, SparkSession}
import org.apache.spark.{SparkContext, SparkEnv}

import io.penstock.Penstock
import io.penstock.metrics.{Metric, MetricOutput, Metrics}

/**
 * Runs executors in separate processes. The binding is random, so that in every batch executors get shards that they do
 * not hold. Executors are killed, so that some of them hold nothing at all. Spark's default file manager writes the
 * checkpoint.
 */
class LocalClusterSuite extends OperatorMatrixSuite with LocalCluster {

  compareWithSpark(Brief.someOf(
    Seq(
      AggregationCases.appendMode,
      DeduplicationCases.thenAggregationByLess,
      StreamJoinCases.fullOuterNewestFormat,
      GroupsWithStateCases.eventTime,
      TransformWithStateCases.eventTimers,
      CompositionCases.aggregationsThenJoin
    )
  ))

  if (!Brief.isOn) test("aggregation: a task fails and is retried, perhaps elsewhere") {
    assertSameAnswers(AggregationCases.appendMode, disturb = Faults.failTasksOnce)
  }

  test("aggregation: executors are killed between batches") {
    assertSameAnswers(AggregationCases.appendMode, withExecutorsLost(killOneExecutor))
  }

  if (!Brief.isOn) test("global aggregation: all executors are killed between batches") {
    assertSameAnswers(AggregationCases.global, withExecutorsLost(killAllExecutors))
  }

  if (!Brief.isOn) test("transformWithState: executors are replaced between batches") {
    assertSameAnswers(TransformWithStateCases.eventTimers, withExecutorsLost(replaceOneExecutor))
  }

  /** Runs at least six batches, until `enough` holds or two minutes have passed. */
  private def batches(options: (String, String)*)(
      enough: Seq[StreamingQueryProgress] => Boolean
  ): Seq[StreamingQueryProgress] =
    batchesOf(_.toDF().groupBy("value").agg(count(lit(1)).as("n")), 2000L, options: _*)(enough)

  private def batchesOf(result: MemoryStream[Long] => DataFrame, rows: Long, options: (String, String)*)(
      enough: Seq[StreamingQueryProgress] => Boolean
  ): Seq[StreamingQueryProgress] = batchesOfQuery(result, rows, options: _*)((_, sofar) => enough(sofar))

  private def batchesOfQuery(result: MemoryStream[Long] => DataFrame, rows: Long, options: (String, String)*)(
      enough: (StreamingQuery, Seq[StreamingQueryProgress]) => Boolean
  ): Seq[StreamingQueryProgress] = {
    val session = application.newSession()
    val source = MemoryStream[Long](Encoders.scalaLong, session)
    val query = result(source).writeStream
      .outputMode("update")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .options(options.toMap)
      .format("noop")
      .start()
    def sofar = ReportedRegion.withState(query.recentProgress.toSeq)
    val until = System.nanoTime() + 120000000000L
    try
      do {
        source.addData(1L to rows)
        query.processAllAvailable()
      } while (sofar.size < 6 || !enough(query, sofar) && System.nanoTime() < until)
    finally query.stop()
    sofar
  }

  /**
   * Whether executors sent shards to each other in the last two batches, and loaded none. The first batches may run
   * before the sidecars have started.
   */
  private def travel(progress: Seq[StreamingQueryProgress]): Boolean = {
    val last = progress.takeRight(2)
    metric(last, Metrics.ShardsTravelled).forall(_ > 50) && metric(last, Metrics.ShardsLoaded).forall(_ == 0)
  }

  private def metric(progress: Seq[StreamingQueryProgress], metric: Metric): Seq[Long] =
    progress.map(_.stateOperators.head.customMetrics.get(metric.name).longValue)

  test("tasks run on the executors that hold their shards") {
    // With the static policy the measured cost of rows has no effect.
    val batches = this.batches("penstock.policy" -> "static")(_ => true)
    assert(batches.size == 6)
    val regions = ReportedRegion.of(batches).flatten
    assert(regions.forall(region => region.tasks == 2 && region.moved._1 == 0), regions)
    val loaded = metric(batches, Metrics.ShardsLoaded)
    val folded = metric(batches, Metrics.ShardsFolded)
    // The rows are the same in every batch, so no shard changes its task, and no executor has to load one.
    assert(loaded.forall(_ == 0L), s"shards loaded in each batch: $loaded")
    assert(folded.drop(1).forall(_ == 256L), s"shards folded in each batch: $folded")
    executorsReport()
  }

  test("state is sent between executors' memories, and the waiting time of tasks is reported") {
    // In every other batch the homes are random, and shards move there ahead of the tasks.
    def ahead(p: Seq[StreamingQueryProgress]) = ReportedRegion.of(p).flatten.exists(_.homes._3 > 50)
    val found = batches("penstock.policy" -> "chaos(7)", "penstock.tasks" -> "2")(p => travel(p) && ahead(p))
    assert(ahead(found), ReportedRegion.of(found).flatten.map(_.homes))
    def counts = s"travelled ${metric(found, Metrics.ShardsTravelled)}, loaded ${metric(found, Metrics.ShardsLoaded)}"
    assert(travel(found), counts)
    val moved = ReportedRegion.of(found).flatten.map(_.moved)
    // In the first batch no executor has any state.
    assert(moved.head == ((0L, 0L)), moved)
    assert(moved.drop(1).forall(_._1 > 0) && moved.map(_._2).sum > 0, moved)
    val brought = ReportedRegion.of(found).flatten.map(_.brought)
    assert(brought.head.isEmpty && brought.last.exists(_.matches("local [0-9]+")), brought)
  }

  test("an executor that is given back hands its shards over first") {
    var replacedAt = -1
    val found = batches("penstock.policy" -> "chaos(7)", "penstock.tasks" -> "2") { progress =>
      if (replacedAt < 0 && travel(progress)) {
        replacedAt = progress.size
        replaceOneExecutor(application.sparkContext)
      }
      replacedAt > 0 && progress.size > replacedAt
    }
    assert(replacedAt > 0, "no shard was sent to another executor")
    val loaded = metric(found.drop(replacedAt), Metrics.ShardsLoaded)
    assert(loaded.nonEmpty && loaded.forall(_ == 0L), s"shards loaded after an executor was given back: $loaded")
  }

  test("a new executor gets its share of the shards, by plan or at the barrier") {
    var addedAt = -1
    def balanced(region: ReportedRegion) = region.elsewhere.contains(0) &&
      region.homes._2.exists(why => why.contains("gained over 20 batches") || why == "balanced")
    // On an idle machine a shard has less work in one batch than a move costs, but more in twenty.
    val found = batchesOf(LocalClusterSuite.served(100000L), 600L) { progress =>
      if (addedAt < 0 && progress.size >= 6) {
        addedAt = progress.size
        replaceOneExecutor(application.sparkContext)
      }
      addedAt > 0 && ReportedRegion.of(progress.drop(addedAt)).flatten.exists(balanced)
    }
    val regions = ReportedRegion.of(found).flatten
    val homes = regions.map(r => (r.homes, r.elsewhere))
    assert(regions.forall(_.homes._1.contains(2)) && regions.drop(addedAt).exists(balanced), homes)
    // No shard is loaded from the checkpoint, because the replaced executor has handed its shards over.
    assert(metric(found, Metrics.ShardsLoaded).forall(_ == 0L), homes)
  }

  if (!Brief.isOn) test("queries with few tasks get an executor each and keep it") {
    val queries = Seq.fill(2)(new LocalClusterSuite.PlacedQuery(application.newSession(), newDirectory("checkpoint")))
    val rounds = Buffer.empty[Seq[Set[String]]]
    def round(): Unit = {
      queries.foreach(_.add(400L))
      rounds += queries.map(_.executors()): Unit
    }
    def apart = rounds.size >= 8 && rounds.takeRight(3).distinct.size == 1 && {
      val last = rounds.last
      last.forall(_.size == 1) && last.flatten.distinct.size == 2
    }
    val until = System.nanoTime() + 120000000000L
    val reasons =
      try {
        (1 to 4).foreach(_ => round())
        // The state of both queries is now on the other executor.
        replaceOneExecutor(application.sparkContext)
        while (!apart && System.nanoTime() < until) round()
        queries.map(_.homes)
      } finally queries.foreach(_.stop())
    assert(apart, rounds)
    assert(reasons.forall(_.exists(_.endsWith("; 1 tasks on 1 of 2 executors"))), reasons)
  }

  test("with replicas, a killed executor causes no reload") {
    var killedAt = -1
    // Shards keep their tasks, so each of the two executors has about half of them.
    val found = batches("penstock.replicas" -> "2") { progress =>
      if (killedAt < 0 && progress.size >= 8) {
        killedAt = progress.size
        killOneExecutor(application.sparkContext)
      }
      killedAt > 0 && progress.size > killedAt + 1
    }
    val after = found.drop(killedAt)
    def brought = s"${ReportedRegion.of(after).flatten.map(_.brought)}"
    assert(killedAt > 0 && metric(after, Metrics.ShardsLoaded).forall(_ == 0L), brought)
    // Only the changes of the last batch before the kill come from the checkpoint.
    assert(metric(after, Metrics.ShardsCaughtUp).sum > 50L, brought)
  }

  if (!Brief.isOn) test("executors that a query does not need are given back, and requested again when needed") {
    val context = application.sparkContext
    var fewAt = -1
    val found =
      batchesOfQuery(LocalClusterSuite.served(300000L), 400L, "penstock.latency.targetMs" -> "60000") { (query, p) =>
        val executors = context.getExecutorIds().size
        if (fewAt < 0 && executors == 1) {
          fewAt = p.size
          // An unreachable target, which asks for as many executors as are useful.
          Penstock.setOption(query, "latency.targetMs", "1")
        }
        fewAt > 0 && executors == 2
      }
    val texts = found.flatMap(p => Option(p.observedMetrics.get("penstock").getAs[String]("scaling"))).distinct
    assert(fewAt > 10 && context.getExecutorIds().size == 2, texts)
    assert(texts.exists(_.contains("within stabilisation window")) && texts.exists(_.contains("out of reach")), texts)
    // Executors that were given back had handed over their shards before.
    assert(metric(found, Metrics.ShardsLoaded).forall(_ == 0L))
  }

  // This test is last, because sidecars killed so often are restarted only after a minute.
  if (!Brief.isOn) test("aggregation: sidecars are killed between batches") {
    def killed(seed: Long, twoInputs: Boolean) =
      Script.standard(seed, twoInputs).flatMap(step => Seq(step, Step.Disturb(() => killSidecars())))
    assertSameAnswers(AggregationCases.appendMode, killed)
  }

  private def killSidecars(): Unit = ProcessHandle.current().descendants().iterator().asScala
    .filter(_.info().commandLine().orElse("").contains("-m penstock.sidecars.transfer")).foreach(_.destroyForcibly())

  /** Checks that every executor has its own metrics in its own metrics system. */
  private def executorsReport(): Unit = {
    val reports = application.sparkContext.parallelize(1 to 8, 8)
      .map(_ => (SparkEnv.get.executorId, PluginMetrics.here, Runtime.getRuntime.maxMemory)).collect()
    reports.foreach { case (_, metrics, heapBytes) =>
      assert(metrics.keySet == Metrics.at(MetricOutput.Executor).map(_.name).toSet)
      assert(metrics(Metrics.StateMaxBytes.name) == heapBytes / 100 * 60)
    }
    reports.groupBy(_._1).valuesIterator.map(_.head._2).foreach { metrics =>
      assert(metrics(Metrics.ShardsHeld.name) > 64L && metrics(Metrics.StateBytes.name) > 64L * 512L, metrics)
      assert(metrics(Metrics.ShardsFolded.name) > 5L * 64L, metrics)
    }
    assert(PluginMetrics.here.keySet == Metrics.at(MetricOutput.Driver).map(_.name).toSet)
  }

  private def withExecutorsLost(lose: SparkContext => Unit)(seed: Long, twoInputs: Boolean): Seq[Step] = {
    val steps = Script.standard(seed, twoInputs)
    val loss = Step.Disturb(() => lose(application.sparkContext))
    steps.take(2) ++ Seq(loss) ++ steps.slice(2, 5) ++ Seq(loss) ++ steps.drop(5)
  }

  /** Kills an executor as an outage would, without a hand-over. */
  private def killOneExecutor(context: SparkContext): Unit = kill(context, context.getExecutorIds().take(1))

  private def killAllExecutors(context: SparkContext): Unit = kill(context, context.getExecutorIds())

  private def kill(context: SparkContext, ids: Seq[String]): Unit = {
    val executors = ProcessHandle.current().descendants().iterator().asScala.filter { process =>
      // Java truncates long command lines, such as those with the tests' class path.
      val line = Try(Files.readString(Path.of(s"/proc/${process.pid}/cmdline"))).getOrElse("").split('\u0000')
      line.exists(_.endsWith("CoarseGrainedExecutorBackend")) &&
      ids.exists(id => line.containsSlice(Seq("--executor-id", id)))
    }.toSeq
    assert(executors.size == ids.size, executors)
    executors.foreach(_.destroyForcibly())
    ids.foreach(id => awaitExecutors(context, atLeast = 2, without = id))
  }

  private def replaceOneExecutor(context: SparkContext): Unit = {
    val before = context.getExecutorIds()
    assert(before.nonEmpty)
    context.killAndReplaceExecutor(before.head)
    awaitExecutors(context, atLeast = 2, without = before.head)
  }
}

object LocalClusterSuite {

  /** Counts values in one task, and records which executors ran it. */
  final private class PlacedQuery(session: SparkSession, checkpoint: Path) {
    private val source = MemoryStream[Long](Encoders.scalaLong, session)
    @volatile private var found = Set.empty[String]
    private val query = source.toDS().groupByKey(identity[Long] _)(Encoders.scalaLong).mapGroupsWithState(
      (value: Long, rows: Iterator[Long], state: GroupState[Long]) => {
        rows.foreach(_ => LockSupport.parkNanos(RowNs))
        state.update(value)
        SparkEnv.get.executorId
      }
    )(Encoders.scalaLong, Encoders.STRING).writeStream.outputMode("update")
      .option("checkpointLocation", checkpoint.toString)
      .option("penstock.tasks", "1")
      .foreachBatch((ran: Dataset[String], _: Long) => found = ran.collect().toSet)
      .start()

    def add(rows: Long): Unit = source.addData(1L to rows): Unit

    /** Executors that ran the newest batch, after all input is processed. */
    def executors(): Set[String] = {
      query.processAllAvailable()
      found
    }

    /** The reported reason for the homes of the shards. */
    def homes: Option[String] = ReportedRegion.of(query.recentProgress.toSeq).flatten.flatMap(_.homes._2).lastOption

    def stop(): Unit = query.stop()
  }

  private val RowNs = 300000L

  /** Counts each value, taking the given time per row. */
  def served(rowNs: Long)(source: MemoryStream[Long]): DataFrame =
    source.toDS().groupByKey(identity[Long] _)(Encoders.scalaLong).mapGroupsWithState(
      (value: Long, rows: Iterator[Long], state: GroupState[Long]) => {
        rows.foreach(_ => LockSupport.parkNanos(rowNs))
        state.update(state.getOption.getOrElse(0L) + 1L)
        (value, state.get)
      }
    )(Encoders.scalaLong, Encoders.tuple(Encoders.scalaLong, Encoders.scalaLong)).toDF()
}
