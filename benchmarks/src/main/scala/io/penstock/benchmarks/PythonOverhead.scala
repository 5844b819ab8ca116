package io.penstock.benchmarks

import java.nio.file.Paths

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{DataFrame, SparkSession}

/**
 * The comparison of an operator whose query is written in Python: a PySpark program starts the queries, and the turns
 * are taken here, as for every other operator.
 *
 * @param arguments
 *   as of `overhead`
 */
final class PythonOverhead(spark: SparkSession, arguments: java.util.List[String]) {
  private val args = new Arguments(arguments.asScala.toSeq)
  private val watch = new StageWatch
  private val report = new Report(Paths.get(args.required("out")))
  private val contenders = mutable.ArrayBuffer.empty[Contender]
  spark.sparkContext.addSparkListener(watch)

  /** Names of the file managers to compare with, one after the other. */
  def managers: java.util.List[String] = FileManager.named(args.text("file-manager", "both")).map(_.name).asJava

  /** The setups to start a query in, of an operator that plain Spark runs with the RocksDB provider only. */
  def setups(operator: String, manager: String): java.util.List[SideSetup] =
    FileManager.named(manager).flatMap(Overhead.setups(
      spark,
      args,
      _,
      operator,
      rocksDbOnly = true,
      many = false
    )).asJava

  /** The numbers of a setup, in a session of the setup. */
  def numbers(setup: SideSetup, session: SparkSession): DataFrame =
    setup.numbers(session, Overhead.rows(args), Overhead.mapTasks(spark, args))

  /** How many different keys there are. */
  def keys: Int = Overhead.keys(args)

  /** The query that was started in a setup takes part in the next comparison. */
  def add(setup: SideSetup, query: StreamingQuery): Unit = { contenders += setup.contender(query); () }

  /** Compares the queries that were added since the last comparison, and stops them. */
  def compare(): Unit = {
    val starts = contenders.toSeq.map(c => () => c)
    contenders.clear()
    Comparison.run(watch, report, args, "overhead", starts)
  }

  /** Ends the report. */
  def close(): Unit = report.close()
}
