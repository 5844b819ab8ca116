package io.penstock.benchmarks

import java.time.Instant
import java.util.concurrent.TimeoutException

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, StreamingQueryProgress}

import io.penstock.benchmarks.source.Arrivals
import io.penstock.benchmarks.work.{RowCost, ServedKeys}

/**
 * Measures how long rows wait if they arrive at the largest rate that plain Spark can sustain, independent of how fast
 * they are processed. That rate is measured first, with batches so large that their fixed cost is negligible.
 */
object Latency {
  private val Shards = 256
  private val MapTasks = 8

  /** Rows of the first seconds are not reported, because the JVM is still compiling. */
  private val WarmUpSeconds = 30

  /** One of this number of rows is reported. */
  private val Every = 100L

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val plain = Side.hdfs(tasks).copy(name = "plain")
    val sides = Seq(plain, Side.penstock("hybrid", Shards, tasks, Map("penstock.policy" -> "hybrid")))
    val wanted = args.text("cases", "zipf.*-spread1-omega8").r
    for {
      manager <- FileManager.named(args.text("file-manager", "local"))
      skew <- Skew.cases if wanted.matches(skew.name)
    } {
      def setup(side: Side) = new SideSetup(side, manager, skew.label, every = 1, Comparison.checkpoints(args))
      val run = new Run(spark, args, watch, skew, tasks)
      val rate = run.saturation(setup(plain))
      for (side <- sides if args.wants(side)) {
        val own = setup(side)
        val label = skew.label ++ Map("manager" -> manager.name, "side" -> side.name, "rate" -> rate.round.toString)
        report.line(label + ("bench" -> "latency"), run.latencies(own, rate).map(ms => Map("latencyMs" -> ms)))
      }
    }
  }

  final private class Run(spark: SparkSession, args: Arguments, watch: StageWatch, skew: Skew.Case, tasks: Int) {
    private val zipf = skew.zipf(args.int("keys", 10000), tasks)

    /** Largest rate that a side can sustain, in rows per second. */
    def saturation(setup: SideSetup): Double = {
      val rows = args.int("rows", tasks * 15000)
      val numbers = setup.numbers(setup.session(spark), rows, MapTasks)
      val contender =
        setup.start(ServedKeys.of(numbers, zipf, RowCost(skew.spread), setup.gate, Shards), OutputMode.Update())
      try {
        val (warmUp, rounds) = (args.int("warm-up", 1), args.int("rounds", 3))
        val samples = Seq.fill(warmUp + rounds)(contender.step(watch)).drop(warmUp)
        samples.size * rows * 1000.0 / samples.map(_.progress.durationMs.get("triggerExecution").longValue).sum
      } finally contender.stop()
    }

    /** Times from the arrival of rows to the end of their batch, in ms. */
    def latencies(setup: SideSetup, rate: Double): Seq[Double] = {
      val session = setup.session(spark)
      // The offset log of the first batch is checked after the last batch, so it must be kept.
      session.conf.set("spark.sql.streaming.minBatchesToRetain", "100000")
      val numbers = setup.arriving(session, MapTasks)
      val frame = ServedKeys.of(numbers, zipf, RowCost(skew.spread), setup.gate, Shards)
      val query = setup.query(frame, OutputMode.Update())
      try {
        val arrivals = Arrivals.start(setup.gate, rate, (rate * args.int("seconds", 180)).toLong)
        awaitAll(query, arrivals.rows)
        val batches = query.recentProgress.toSeq.filter(_.numInputRows > 0)
        batches.foreach { progress =>
          val stage = watch.of(query.id.toString, progress.batchId).filter(_.readsShuffle).last
          Evidence.check(setup.side, setup.checkpoint, progress, stage)
        }
        val firstRow = (rate * WarmUpSeconds).toLong
        for {
          batch <- batches
          end = Instant.parse(batch.timestamp).toEpochMilli + batch.durationMs.get("triggerExecution").longValue
          row <- rows(batch) if row >= firstRow && row % Every == 0
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
        if (System.nanoTime() > deadline) throw new TimeoutException(s"the query did not process $rows rows in time")
        Thread.sleep(100)
      }
    }
  }
}
