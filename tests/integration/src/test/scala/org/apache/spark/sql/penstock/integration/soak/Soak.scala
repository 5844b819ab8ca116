package org.apache.spark.sql.penstock.integration.soak

import java.nio.file.Files

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{col, count, lit, repeat}
import org.apache.spark.sql.penstock.integration.harness.Applications
import org.apache.spark.util.Utils

/**
 * `make soak`. A query updates the same keys again and again, and must not need more memory, threads, descriptors or
 * files than at the beginning. Arguments: seconds, number of keys, bytes of each key's value, and optionally
 * `slow-snapshots` for slow snapshots and large shards.
 *
 * Exits with status 1 if a quantity grows.
 */
object Soak {
  private val Samples = 60
  private val ChangedPerBatch = 2000

  /** Passes over all keys before the first sample. After them the shards take turns in reclaiming memory. */
  private val PassesBefore = 3

  def main(args: Array[String]): Unit = {
    val settings = args.lift(3) match {
      case None => Map.empty[String, String]
      case Some("slow-snapshots") => SlowSnapshotFiles.Settings
      case Some(other) => throw new IllegalArgumentException(s"unknown argument '$other'; allowed: slow-snapshots")
    }
    val contradictions = run(args(0).toInt, args(1).toLong, args(2).toInt, println, settings)
    contradictions.foreach(println)
    println(if (contradictions.isEmpty) "nothing grows" else "something grows")
    sys.exit(if (contradictions.isEmpty) 0 else 1)
  }

  /**
   * Runs a query for some seconds and returns the quantities that grow.
   *
   * @param settings
   *   Additional settings of the application
   */
  def run(
      seconds: Int,
      keys: Long,
      valueBytes: Int,
      say: String => Unit,
      settings: Map[String, String] = Map.empty
  ): Seq[String] = {
    val directory = Files.createTempDirectory("penstock-soak")
    val checkpoint = directory.resolve("checkpoint")
    val session = Applications.start(
      "soak",
      "local[2]",
      directory.resolve("warehouse"),
      Applications.Plugin ++ Applications.FastFiles +
        ("spark.sql.streaming.minBatchesToRetain" -> "5") + ("spark.sql.streaming.numRecentProgressUpdates" -> "10") ++
        settings
    )
    try {
      val source = MemoryStream[Long](Encoders.scalaLong, session)
      val query = source.toDF()
        .groupBy(col("value") % lit(keys), repeat(lit("x"), valueBytes))
        .agg(count(lit(1)).as("n"))
        .writeStream
        .outputMode("update")
        .option("checkpointLocation", checkpoint.toString)
        .format("noop")
        .start()
      var next = 0L
      def feed(rows: Long): Unit = {
        source.addData(next until next + rows)
        next += rows
        query.processAllAvailable()
      }
      while (next < PassesBefore * keys) feed(math.min(PassesBefore * keys - next, 200000L))
      say(s"$keys keys exist and each was updated after ${query.lastProgress.batchId + 1} batches")
      val sampler = new Sampler(checkpoint)
      val samples = Iterator
        .continually {
          val until = System.nanoTime() + seconds * 1000000000L / Samples
          while (System.nanoTime() < until) feed(ChangedPerBatch.toLong)
          sampler.sample()
        }
        .take(Samples)
        .toSeq
      query.stop()
      say(s"${query.lastProgress.batchId + 1} batches")
      Sampler.Quantities.zipWithIndex.flatMap { case (quantity, i) =>
        val values = samples.map(_(i))
        say(f"${quantity.name}: ${values.head}%.0f at first, ${values.last}%.0f at last, ${values.max}%.0f at most")
        quantity.contradiction(values)
      }
    } finally {
      session.stop()
      Utils.deleteRecursively(directory.toFile)
    }
  }
}
