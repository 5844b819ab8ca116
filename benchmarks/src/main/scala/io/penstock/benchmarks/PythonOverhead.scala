package io.penstock.benchmarks

import java.nio.file.Paths

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{DataFrame, SparkSession}

/**
 * The comparison for an operator whose query is written in Python. A PySpark program starts the queries, and this class
 * runs their batches as for all other operators.
 *
 * @param arguments
 *   options of the benchmark `overhead`
 */
final class PythonOverhead(spark: SparkSession, arguments: java.util.List[String]) {
  private val args = new Arguments(arguments.asScala.toSeq)
  private val watch = new StageWatch
  private val report = new Report(Paths.get(args.required("out")))
  private val contenders = mutable.ArrayBuffer.empty[Contender]
  spark.sparkContext.addSparkListener(watch)

  /** Names of the file managers to compare, in order. */
  def managers: java.util.List[String] = FileManager.named(args.text("file-manager", "both")).map(_.name).asJava

  /** The setups for an operator that plain Spark can run only with the RocksDB provider. */
  def setups(operator: String, manager: String): java.util.List[SideSetup] =
    FileManager.named(manager).flatMap(Overhead.setups(
      spark,
      args,
      _,
      operator,
      rocksDbOnly = true,
      many = false
    )).asJava

  /** The source of numbers of a setup, in a session of that setup. */
  def numbers(setup: SideSetup, session: SparkSession): DataFrame =
    setup.numbers(session, Overhead.rows(args), Overhead.mapTasks(spark, args))

  /** Number of distinct keys. */
  def keys: Int = Overhead.keys(args)

  /** Adds a query that was started in a setup to the next comparison. */
  def add(setup: SideSetup, query: StreamingQuery): Unit = { contenders += setup.contender(query); () }

  /** Compares the queries that were added since the last comparison, and stops them afterwards. */
  def compare(): Unit = {
    val starts = contenders.toSeq.map(c => () => c)
    contenders.clear()
    Comparison.run(watch, report, args, "overhead", starts)
  }

  /** Closes the report. */
  def close(): Unit = report.close()
}
