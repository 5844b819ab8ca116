package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.{sha2, substring}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.state.ShardStores
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.metrics.Metrics

/**
 * Measures the time from the start of a query to the end of its first batch, with a large state that is only in the
 * checkpoint and not in memory.
 */
object Recover {
  private val Shards = 256
  private val KeyBytes = 100

  /** Number of batches that change few keys, so that the checkpoint has both snapshots and deltas. */
  private val Changes = 30

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    val keys = args.int("keys", 5000000)
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val queries = LoadedKeys.sides(Shards, cores, args).map { side =>
        val setup = new SideSetup(side, manager, Map("keys" -> keys.toString), every = 1, Comparison.checkpoints(args))
        val counts = setup
          .numbers(setup.session(spark), LoadedKeys.sizes(keys, args.int("rows", 1000)), cores)
          // Hashes, so that no store can compress the keys.
          .groupBy(substring(sha2(LoadedKeys.key(keys).cast("string").cast("binary"), 512), 1, KeyBytes).as("k"))
          .count()
        def start(batch: Long): Contender = setup.start(counts, OutputMode.Update(), batch)
        val loading = start(0L)
        val next = LoadedKeys.load(loading, watch, Changes)
        // Plain Spark's providers write their snapshots in the background.
        Thread.sleep(SQLConf.get.streamingMaintenanceInterval * 3)
        loading.stop()
        new Restarts(start, next.toLong)
      }
      val seconds = args.int("seconds", Int.MaxValue)
      val results = Rounds.take(queries, args.int("warm-up", 2), args.int("rounds", 6), seconds)(_ => 1)(_.once(watch))
      for ((query, samples) <- results)
        report.write("recover", query.last, samples.map(_._1), samples.map(s => Map("start" -> s._2)))
    }
  }

  /** A query that is restarted many times. */
  final private class Restarts(start: Long => Contender, private var batch: Long) {
    var last: Contender = _

    private def mustHaveLoaded(sample: Sample): Unit = {
      val loaded = sample.progress.stateOperators.map(_.customMetrics.get(Metrics.ShardsLoaded.name).longValue).sum
      if (loaded != Shards)
        throw new IllegalStateException(s"$loaded of $Shards shards were loaded from the checkpoint, expected all")
    }

    /**
     * Starts the query once. Returns the sample of its first batch, and the time in ms from the call that starts it to
     * the end of that batch.
     */
    def once(watch: StageWatch): (Sample, Long) = {
      ShardStores.find.foreach(_.dropAll())
      System.gc()
      val begin = System.nanoTime()
      last = start(batch)
      val sample = last.step(watch)
      val ms = (System.nanoTime() - begin) / 1000000L
      if (last.side.mode == "on") mustHaveLoaded(sample)
      last.stop()
      batch += 1
      (sample, ms)
    }
  }
}
