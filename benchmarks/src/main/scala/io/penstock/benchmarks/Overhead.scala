package io.penstock.benchmarks

import org.apache.spark.sql.SparkSession

import io.penstock.benchmarks.work.Operators

/** Measures batches with 256 shards on as many tasks as there are cores, against plain Spark's providers. */
object Overhead {
  private val Shards = 256
  private val Many = 200

  def run(spark: SparkSession, args: Arguments, watch: StageWatch, report: Report): Unit = {
    val operator = Operators.named(args.text("op", Operators.Aggregation.name))
    val many = operator == Operators.Aggregation
    for (manager <- FileManager.named(args.text("file-manager", "both"))) {
      val starts = setups(spark, args, manager, operator.name, operator.rocksDbOnly, many).map { setup => () =>
        setup.start(spark, operator, rows(args), keys(args), mapTasks(spark, args))
      }
      Comparison.run(watch, report, args, "overhead", starts)
    }
  }

  def rows(args: Arguments): Int = args.int("rows", 10000)
  def keys(args: Arguments): Int = args.int("keys", 10000)
  def mapTasks(spark: SparkSession, args: Arguments): Int = args.int("map-tasks", spark.sparkContext.defaultParallelism)

  /**
   * The setups for one operator: Penstock, plain Spark with a partition per core and, if `many`, plain Spark with 200
   * partitions.
   *
   * @param rocksDbOnly
   *   whether plain Spark can run the operator only with the RocksDB provider
   * @param many
   *   whether to compare with 200 partitions as well
   */
  def setups(
      spark: SparkSession,
      args: Arguments,
      manager: FileManager,
      operator: String,
      rocksDbOnly: Boolean,
      many: Boolean
  ): Seq[SideSetup] = {
    val cores = spark.sparkContext.defaultParallelism
    def stock(n: Int) = if (rocksDbOnly) Seq(Side.rocksdb(n), Side.rocksdbChangelog(n)) else Side.stock(n)
    val few = Side.penstock("penstock", Shards, cores) +: stock(cores)
    val slow = if (many) stock(Many) else Nil
    for (side <- few ++ slow if args.wants(side)) yield {
      // A batch with 200 partitions takes as long as ten batches with two, so these sides run fewer batches.
      val every = if (slow.contains(side)) args.int("slow-every", 9) else 1
      new SideSetup(side, manager, Map("operator" -> operator), every, Comparison.checkpoints(args))
    }
  }
}
