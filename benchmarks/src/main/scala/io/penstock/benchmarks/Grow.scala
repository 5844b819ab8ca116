package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.source.Gate
import io.penstock.benchmarks.work.{EvenKeys, RowCost, ServedKeys}

/**
 * An application with few cores ends, and its queries continue from their checkpoints in an application with four times
 * as many cores, with the same options. Plain Spark has as many partitions as the first application has cores.
 */
object Grow {
  private val Shards = 256
  private val KeysOfShard = 8
  private val Few = 4
  private val Many = 16

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val rows = args.int("rows", Few * 12288)
    val keys = EvenKeys(Shards, args.int("keys", Shards * KeysOfShard) / Shards)
    val sides = Seq(Side.hdfs(Few).copy(name = "plain"), Side.penstock("penstock", Shards, Few))
    spark.stop()
    for (manager <- FileManager.named(args.text("file-manager", "local"))) {
      val setups = sides
        .filter(args.wants)
        .map(new SideSetup(_, manager, Map.empty, every = 1, Comparison.checkpoints(args)))
      for (cores <- Seq(Few, Many)) {
        val application = SparkSession.builder().master(s"local[$cores]").getOrCreate()
        application.sparkContext.addSparkListener(watch)
        def start(setup: SideSetup): Contender = {
          val numbers = setup.numbers(setup.session(application), rows, args.int("map-tasks", Few))
          val frame = ServedKeys.of(numbers, keys, RowCost(1.0), setup.gate, Shards)
          setup.start(frame, OutputMode.Update(), Gate.batches(setup.gate))
        }
        try take(setups.map(start), cores, watch, report, args)
        finally application.stop()
      }
    }
  }

  private def take(
      contenders: Seq[Contender],
      cores: Int,
      watch: StageWatch,
      report: Report,
      args: Arguments
  ): Unit = {
    val seconds = args.int("seconds", Int.MaxValue)
    def turn(c: Contender) = c.step(watch, tasks = if (c.side.mode == "off") Few else cores)
    contenders.foreach(turn)
    val results = Rounds.take(contenders, args.int("warm-up", 2), args.int("rounds", 5), seconds)(_.every)(turn)
    for ((contender, samples) <- results)
      report.write("grow", contender, samples, label = Map("cores" -> cores.toString))
    contenders.foreach(_.stop())
  }
}
