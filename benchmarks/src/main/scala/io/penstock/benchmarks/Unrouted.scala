package io.penstock.benchmarks

import org.apache.spark.sql.functions.col
import org.apache.spark.sql.penstock.benchmarks.ForeignNodes
import org.apache.spark.sql.{DataFrame, SparkSession}

import io.penstock.benchmarks.work.Operators

/** Measures plans whose state Penstock cannot feed through its own exchanges alone, against plain Spark. */
object Unrouted {
  private val Shards = 256
  private val CachedTable = "cached table"

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val cores = spark.sparkContext.defaultParallelism
    for {
      manager <- FileManager.named(args.text("file-manager", "both"))
      plan <- Seq(ForeignNodes.Below, ForeignNodes.HandingOver, ForeignNodes.Between, CachedTable)
    } {
      val routed = plan != ForeignNodes.Between
      val own = Side.penstock(
        "penstock",
        Shards,
        cores
      ).copy(boundAtBarrier = routed, routed = routed, inTurn = plan != ForeignNodes.HandingOver)
      val sides = (own +: Side.stock(cores)).filter(args.wants)
      val starts = sides.map(side => () => start(spark, args, manager, plan, side))
      Comparison.run(watch, report, args, "unrouted", starts)
    }
  }

  private def start(
      spark: SparkSession,
      args: Arguments,
      manager: FileManager,
      plan: String,
      side: Side
  ): Contender = {
    val setup = new SideSetup(side, manager, Map("plan" -> plan), every = 1, Comparison.checkpoints(args))
    val session = setup.session(spark)
    session.conf.set(ForeignNodes.Key, plan)
    val numbers = setup.numbers(session, Overhead.rows(args), Overhead.mapTasks(spark, args))
    def counts = Operators.Aggregation.over(numbers, Overhead.rows(args), Overhead.keys(args))
    val frame = plan match {
      case CachedTable => joined(counts, side.statePartitions, Overhead.keys(args))
      case ForeignNodes.Between | ForeignNodes.HandingOver =>
        Operators.Dedup.over(numbers, Overhead.rows(args), Overhead.keys(args)).groupBy("k", "ts").count()
      case _ => counts
    }
    setup.start(frame, Operators.Aggregation.mode)
  }

  /** Joins the counts with a table that has the same partitioning as the state, so that the join needs no exchange. */
  private def joined(counts: DataFrame, partitions: Int, keys: Int): DataFrame = {
    val session = counts.sparkSession
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    val table = session.range(keys.toLong).select(col("id").as("k"), (col("id") * 2).as("name"))
    val cached = table.repartition(partitions, col("k")).cache()
    // Spark knows the partitioning only of a materialized table, and would plan an exchange otherwise.
    cached.count(): Unit
    counts.join(cached, "k")
  }
}
