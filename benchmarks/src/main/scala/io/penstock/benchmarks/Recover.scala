package io.penstock.benchmarks

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.{col, lit, lpad, pmod}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.state.ShardStores
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.source.BatchSizes

/**
 * How long a query takes from its start to the end of its first batch, with a large state in the checkpoint and nothing
 * of it in memory.
 */
object Recover {
  private val Shards = 256
  private val Loads = 20
  private val KeyBytes = 100

  /** Batches that change little: a checkpoint has snapshots and changes on top of them. */
  private val Changes = 30

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    val keys = args.int("keys", 5000000)
    val sides = Seq(
      Side.penstock("penstock", Shards, cores),
      Side.hdfs(cores),
      Side.rocksdb(cores),
      Side.rocksdbChangelog(cores)
    ).filter(args.wants)
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val queries = sides.map { side =>
        val lane = new Lane(side, manager, Map("keys" -> keys.toString), every = 1, Comparison.checkpoints(args))
        val sizes = BatchSizes(Loads.toLong, (keys / Loads).toLong, args.int("rows", 1000).toLong)
        val number = pmod(col("value") * lit(LoadedKeys.Stride), lit(keys.toLong))
        val counts = lane
          .numbers(lane.session(spark), sizes, cores)
          .groupBy(lpad(number.cast("string"), lit(KeyBytes), lit("0")).as("k"))
          .count()
        def start(batch: Long): Contender = lane.start(counts, OutputMode.Update(), batch)
        val loaded = LoadedKeys.load(start(0L), Loads + Changes, watch)
        // Plain Spark's providers write their snapshots in the background.
        Thread.sleep(SQLConf.get.streamingMaintenanceInterval * 3)
        loaded.stop()
        new Restarts(start, lane, Loads + Changes)
      }
      for (_ <- 0 until args.int("warm-up", 2)) queries.foreach(_.once(watch))
      val measured = queries.map(_ -> mutable.ArrayBuffer[(Sample, Long)]())
      for (round <- 0 until args.int("rounds", 6)) {
        val turn = if (round % 2 == 0) measured else measured.reverse
        for ((query, samples) <- turn) samples += query.once(watch)
      }
      for ((query, samples) <- measured)
        report.write("recover", query.last, samples.map(_._1).toSeq, samples.map(s => Map("start" -> s._2)).toSeq)
    }
  }

  /** A query that is started again and again. */
  final private class Restarts(start: Long => Contender, lane: Lane, private var batch: Long) {
    var last: Contender = _

    /** One start: the sample of its batch, and ms from the call that starts the query to the end of the batch. */
    def once(watch: StageWatch): (Sample, Long) = {
      ShardStores.drop(lane.checkpoint.resolve("state").toUri.toString)
      System.gc()
      val begin = System.nanoTime()
      last = start(batch)
      val sample = last.step(watch)
      val ms = (System.nanoTime() - begin) / 1000000L
      last.stop()
      batch += 1
      (sample, ms)
    }
  }
}
