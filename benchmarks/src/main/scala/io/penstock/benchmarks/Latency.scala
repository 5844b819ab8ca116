package io.penstock.benchmarks

import java.time.Instant
import java.util.concurrent.TimeoutException

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, StreamingQueryProgress}

import io.penstock.benchmarks.source.Arrivals
import io.penstock.benchmarks.work.{RowCost, ServedKeys}

/**
 * How long rows wait where they arrive as fast as plain Spark can just carry, whoever is slow. That rate is found first, from
 * batches so large that what a batch costs by itself does not count.
 */
object Latency {
  private val Shards = 256
  private val MapTasks = 8

  /** Rows of this long are not told of: the JVM compiles. */
  private val WarmUpSeconds = 30

  /** Of so many rows one is told of. */
  private val Every = 100L

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val plain = Side.hdfs(tasks).copy(name = "plain")
    val sides = Seq(plain, Side.penstock("hybrid", Shards, tasks, Map("penstock.policy" -> "hybrid")))
    val wanted = args.text("cases", "zipf.*-spread1-omega8").r
    for {
      manager <- FileManager.named(args.text("file-manager", "local"))
      of <- Skew.cases if wanted.matches(of.name)
    } {
      def setup(side: Side) = new SideSetup(side, manager, of.label, every = 1, Comparison.checkpoints(args))
      val run = new Run(spark, args, watch, of, tasks)
      val rate = run.saturation(setup(plain))
      for (side <- sides if args.wants(side)) {
        val own = setup(side)
        val label = of.label ++ Map("manager" -> manager.name, "side" -> side.name, "rate" -> rate.round.toString)
        report.line(label + ("bench" -> "latency"), run.latencies(own, rate).map(ms => Map("latencyMs" -> ms)))
      }
    }
  }

  final private class Run(spark: SparkSession, args: Arguments, watch: StageWatch, of: Skew.Case, tasks: Int) {
    private val zipf = of.zipf(args.int("keys", 10000), tasks)

    /** Rows in a second that a side can carry at most. */
    def saturation(setup: SideSetup): Double = {
      val rows = args.int("rows", tasks * 15000)
      val numbers = setup.numbers(setup.session(spark), rows, MapTasks)
      val contender =
        setup.start(ServedKeys.of(numbers, zipf, RowCost(of.spread), setup.gate, Shards), OutputMode.Update())
      try {
        val (warmUp, rounds) = (args.int("warm-up", 1), args.int("rounds", 3))
        val samples = Seq.fill(warmUp + rounds)(contender.step(watch)).drop(warmUp)
        samples.size * rows * 1000.0 / samples.map(_.progress.durationMs.get("triggerExecution").longValue).sum
      } finally contender.stop()
    }

    /** From the arrival of rows to the end of their batch, in ms. */
    def latencies(setup: SideSetup, rate: Double): Seq[Double] = {
      val session = setup.session(spark)
      // The first batch is looked at when all are over.
      session.conf.set("spark.sql.streaming.minBatchesToRetain", "100000")
      val numbers = setup.arriving(session, MapTasks)
      val query = setup.query(ServedKeys.of(numbers, zipf, RowCost(of.spread), setup.gate, Shards), OutputMode.Update())
      try {
        val arrivals = Arrivals.start(setup.gate, rate, (rate * args.int("seconds", 180)).toLong)
        awaitAll(query, arrivals.rows)
        val batches = query.recentProgress.toSeq.filter(_.numInputRows > 0)
        batches.foreach { progress =>
          val stage = watch.of(query.id.toString, progress.batchId).filter(_.readsShuffle).last
          Evidence.check(setup.side, setup.checkpoint, progress, stage)
        }
        val told = (rate * WarmUpSeconds).toLong
        for {
          batch <- batches
          end = Instant.parse(batch.timestamp).toEpochMilli + batch.durationMs.get("triggerExecution").longValue
          row <- rows(batch) if row >= told && row % Every == 0
        } yield end - arrivals.ms(row)
      } finally query.stop()
    }

    private def rows(batch: StreamingQueryProgress): Iterable[Long] = {
      def offset(text: String) = Option(text).fold(0L)(_.toLong)
      offset(batch.sources.head.startOffset) until offset(batch.sources.head.endOffset)
    }

    private def awaitAll(query: StreamingQuery, rows: Long): Unit = {
      val deadline = System.nanoTime() + 5L * args.int("seconds", 180) * 1000 * 1000 * 1000
      while (query.recentProgress.map(_.numInputRows).sum < rows) {
        query.exception.foreach(throw _)
        if (System.nanoTime() > deadline) throw new TimeoutException(s"$rows rows were not done in time")
        Thread.sleep(100)
      }
    }
  }
}
