package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.OutputMode

import io.penstock.benchmarks.work.{RowCost, Served, ServedKeys, WhoRan, Zipf}

/**
 * Elasticutor's micro-benchmark (section 5.1) in Spark: skewed keys, rows with a millisecond of waiting on average, and
 * sixteen tasks. Other keys become hot several times a minute. It compares plain Spark with several policies.
 */
object Skew {
  private val Shards = 256

  /** Number of rows per minute at perfect balance, when all tasks are always busy. */
  private def minuteRows(tasks: Int) = 60000L * tasks

  /**
   * A case of the benchmark.
   *
   * @param exponent
   *   exponent of Zipf's law
   * @param spread
   *   cost of a row of the most expensive key over that of the cheapest key
   * @param omega
   *   number of shuffles of keys per minute, at perfect balance
   */
  final private[benchmarks] case class Case(exponent: Double, spread: Double, omega: Int) {
    def label: Map[String, String] =
      Map("zipf" -> exponent.toString, "spread" -> spread.toInt.toString, "omega" -> omega.toString)
    def name: String = s"zipf$exponent-spread${spread.toInt}-omega$omega"
    def zipf(keys: Int, tasks: Int): Zipf = Zipf(keys, exponent, if (omega > 0) minuteRows(tasks) / omega else 0L)
  }

  private[benchmarks] val cases: Seq[Case] = for {
    (exponent, spread) <- Seq((0.5, 1.0), (0.85, 1.0), (0.5, 20.0))
    omega <- Seq(0, 2, 8, 16)
  } yield Case(exponent, spread, omega)

  /** Plain Spark, the papers' policies with their published tolerance, and hybrid. */
  private def sides(tasks: Int): Seq[Side] = {
    def policy(name: String, options: (String, String)*) =
      Side.penstock(name, Shards, tasks, Map("penstock.policy" -> name, "penstock.tasks" -> tasks.toString) ++ options)
    Seq(
      Side.hdfs(tasks).copy(name = "plain"),
      policy("refine", "penstock.theta" -> "1.2"),
      policy("mixed", "penstock.theta" -> "1.08"),
      policy("hybrid")
    )
  }

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val tasks = spark.sparkContext.defaultParallelism
    val rows = args.int("rows", tasks * 5000)
    val wanted = args.text("cases", ".*").r
    val chosen = for {
      manager <- FileManager.named(args.text("file-manager", "local"))
      skew <- cases if wanted.matches(skew.name)
    } yield (manager, skew)
    for (((manager, skew), number) <- chosen.zipWithIndex) {
      val starts = sides(tasks).filter(args.wants).map { side => () =>
        val setup = new SideSetup(side, manager, skew.label, every = 1, Comparison.checkpoints(args))
        val numbers = setup.numbers(setup.session(spark), rows, args.int("map-tasks", 8))
        val zipf = skew.zipf(args.int("keys", 10000), tasks)
        setup.start(ServedKeys.of(numbers, zipf, RowCost(skew.spread), setup.gate, Shards), OutputMode.Update())
      }
      Comparison.run(watch, report, args, "skew", starts, (c, batch) => work(c.gate, batch), number == 0)
    }
  }

  private def work(run: String, batch: Long): Map[String, Any] =
    Served.ofBatch(run, batch) ++ WhoRan.moved(run, batch).map("moved" -> _)
}
