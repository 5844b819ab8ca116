package org.apache.spark.sql.penstock.integration.noise

import java.nio.file.Path
import java.util.Random

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{col, hash, lit, min, pmod}
import org.apache.spark.sql.penstock.integration.harness.{Engine, ReportedRegion}
import org.apache.spark.sql.penstock.report.ReportRows
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode, StreamingQueryProgress}
import org.apache.spark.sql.{Encoder, Encoders, classic}
import org.apache.spark.util.Utils

/**
 * A query with the same rows in every shard and batch, run during a disturbance.
 *
 * @param rowsOfShard
 *   Number of rows of each shard in each batch
 * @param hasExpensiveKey
 *   Whether the rows of one key cost 20 times as much
 */
final case class NoisyRun(
    seed: Long,
    tasks: Int,
    rowsOfShard: Int,
    hasExpensiveKey: Boolean,
    disturbance: Disturbance,
    batches: Int
) {
  import NoisyRun._

  /** Runs the query and returns the reports of its batches. */
  def play(application: classic.SparkSession, checkpoint: Path): Seq[Report] = {
    val session = Engine.penstock(Shards, "hybrid").session(application)
    val source = MemoryStream[Long](Longs, session)
    val keys = evenKeys(session)
    val expensive = if (hasExpensiveKey) keys(new Random(seed).nextInt(Shards)) else -1L
    val query = counted(source, expensive).writeStream
      .outputMode("update")
      .option("checkpointLocation", checkpoint.toString)
      .option("penstock.tasks", tasks.toString)
      .format("noop")
      .start()
    val rows = new scala.util.Random(seed).shuffle(Seq.fill(rowsOfShard)(keys).flatten)
    val disturbed = disturbance.start()
    try
      (1 to batches).foreach { _ =>
        source.addData(rows)
        query.processAllAvailable()
      }
    finally {
      disturbed.close()
      query.stop()
      Utils.deleteRecursively(checkpoint.toFile)
    }
    ReportedRegion.withState(query.recentProgress.toSeq).map(report)
  }

  /** Evidence that noise was taken for load, or that the expensive key was found late. */
  def contradictions(reports: Seq[Report]): Seq[String] = {
    val most = reports.map(_.rowsOverMean).max
    val advised = reports.filter(r => Advice.exists(r.decision.contains))
    val found = reports.indexWhere(_.byCost)
    if (hasExpensiveKey)
      Option.when(found < 0 || found > LastToFind)(s"the expensive key counted from batch $found on").toSeq
    else
      Option.when(most > MaxRatio)(f"a task had $most%.2f of the mean's rows").toSeq ++
        advised.headOption.map(r => s"advice: ${r.decision}")
  }

  override def toString: String =
    s"seed $seed: $tasks tasks, $rowsOfShard rows a shard, $disturbance${if (hasExpensiveKey) ", an expensive key"
      else ""}"
}

object NoisyRun {
  private val Shards = 256
  private val Longs: Encoder[Long] = Encoders.scalaLong
  private val MaxRatio = 1.1

  /** Batches are counted from 0. Costs are known after three batches and trusted after two more. */
  private val LastToFind = 6
  private val Advice = Seq("A new checkpoint", "split the key")

  /** Takes a few microseconds of a core. */
  private val Rounds = 5000
  private val ExpensiveRounds = 20 * Rounds

  /**
   * @param rowsOverMean
   *   Rows of the task with the most rows, over the mean
   * @param byCost
   *   Whether shards were bound by the cost of their rows
   */
  final case class Report(rowsOverMean: Double, byCost: Boolean, moved: Int, decision: String)

  private def report(progress: StreamingQueryProgress): Report = {
    val region = ReportRows.regions(ReportRows.of(progress).get).head
    def number(field: String) = region.getAs[Double](field)
    Report(
      number("imbalance"),
      math.abs(number("imbalance") - number("expectedImbalance")) > 1e-3,
      region.getAs[Int]("shardsMoved"),
      region.getAs[String]("decision")
    )
  }

  /** One key of each shard. */
  private def evenKeys(session: classic.SparkSession): Seq[Long] =
    session.range(20L * Shards).groupBy(pmod(hash(col("id")), lit(Shards))).agg(min("id").as("id"))
      .collect().map(_.getAs[Long]("id")).toSeq.sorted

  private def counted(source: MemoryStream[Long], expensive: Long) =
    source.toDS().groupByKey(identity[Long] _)(Longs).flatMapGroupsWithState[Long, Long](
      OutputMode.Update(),
      GroupStateTimeout.NoTimeout()
    ) { (key: Long, rows: Iterator[Long], state: GroupState[Long]) =>
      var (n, mixed) = (0L, key)
      rows.foreach { row =>
        n += 1
        mixed = compute(mixed ^ row, if (key == expensive) ExpensiveRounds else Rounds)
      }
      state.update(state.getOption.getOrElse(0L) + n)
      // Uses the computed value, so that the compiler does not remove the computation.
      if (mixed == 0L) Iterator.empty else Iterator(n)
    }(Longs, Longs).toDF("n")

  private def compute(from: Long, rounds: Int): Long = {
    var x = from | 1L
    var i = 0
    while (i < rounds) {
      x ^= x << 13
      x ^= x >>> 7
      x ^= x << 17
      i += 1
    }
    x
  }
}
