package io.penstock

import java.nio.file.{Files, Path, StandardCopyOption}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, SparkPlugin}
import org.apache.spark.sql.{DataFrame, SparkSession}

import io.penstock.context.{Component, DriverContext, ExecutorContext, ProcessContext}
import org.scalatest.concurrent.Eventually.{eventually, interval, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** Applications that run one after the other in one JVM, as in a notebook. */
class ProcessContextsSuite extends AnyFunSuite {
  private val contexts = Seq(DriverContext, ExecutorContext)
  private val batches = 3
  private val keys = (1 to 100).map(_.toString)

  private def withApplication[T](plugins: String*)(body: SparkSession => T): T = {
    val spark = SparkSession.builder().master("local[2]").appName("contexts").config("spark.ui.enabled", "false")
      .config("spark.plugins", plugins.mkString(",")).config("spark.penstock.shards", "8").getOrCreate()
    try body(spark)
    finally {
      spark.stop()
      SparkSession.clearActiveSession()
      SparkSession.clearDefaultSession()
    }
  }

  /** Runs batches of a query that continues from a checkpoint. Calls `running` before it stops. Returns the counts. */
  private def run(spark: SparkSession, directory: Path)(running: => Unit): Map[String, Long] = {
    val input = Files.createDirectories(directory.resolve("input"))
    val counts = mutable.Map.empty[String, Long]
    val query = spark.readStream.text(input.toString).groupBy("value").count().writeStream.outputMode("update")
      .option("checkpointLocation", directory.resolve("checkpoint").toString)
      .option("penstock.latency.targetMs", "1000")
      .foreachBatch { (batch: DataFrame, _: Long) =>
        batch.collect().foreach(row => counts(row.getString(0)) = row.getLong(1))
      }.start()
    try {
      (1 to batches).foreach { _ =>
        val written = Files.write(Files.createTempFile(directory, "rows", ".txt"), keys.asJava)
        // The query must not see the file before it is complete.
        Files.move(written, input.resolve(written.getFileName), StandardCopyOption.ATOMIC_MOVE)
        query.processAllAvailable()
      }
      running
    } finally query.stop()
    counts.toMap
  }

  private def holding(context: ProcessContext): Map[String, Map[String, Long]] =
    context.components.map(c => nameOf(c) -> c.held.filter(_._2 != 0L)).filter(_._2.nonEmpty).toMap

  private def nameOf(component: Component): String = component.getClass.getSimpleName.stripSuffix("$")

  private def threads: Set[Thread] =
    Thread.getAllStackTraces.keySet.asScala.filter(t => t.isAlive && t.getName.startsWith("penstock-")).toSet

  test("after an application has ended nothing of it is left, and the next one continues its query") {
    val others = threads
    val directory = Files.createTempDirectory("penstock-contexts")
    val used = mutable.Set.empty[String]
    val all = (1 to 2).flatMap { application =>
      val started = withApplication("io.penstock.PenstockPlugin") { spark =>
        val started = contexts.map(_.current)
        val counts = run(spark, directory)(used ++= started.flatMap(holding(_).keySet))
        assert(counts == keys.map(_ -> application.toLong * batches).toMap)
        started
      }
      assert(contexts.forall(_.find.isEmpty))
      eventually(timeout(2.minutes), interval(20.millis)) {
        started.foreach(context => assert(holding(context).isEmpty, context.role))
        val left = threads -- others
        assert(left.isEmpty, left.map(_.getName))
      }
      started
    }
    assert(all.distinct.size == 4)
    // The query used these, so it matters that they were empty afterwards.
    Seq(
      "StateCommits",
      "SessionRoutings",
      "QueryMetrics",
      "LatencyTargets",
      "SidecarPlanner",
      "ShardStores",
      "ManifestCache"
    )
      .foreach(name => assert(used(name), s"$name held nothing while the query ran"))
  }

  test("an application that does not start leaves nothing to the next one") {
    val others = threads
    intercept[IllegalStateException](withApplication("io.penstock.PenstockPlugin", classOf[FailingPlugin].getName)(_ =>
      ()
    ))
    // Spark does not shut down the plugins that it had started.
    val abandoned = DriverContext.current
    withApplication("io.penstock.PenstockPlugin")(_ => assert(DriverContext.current ne abandoned))
    eventually(timeout(2.minutes), interval(20.millis)) {
      assert(holding(abandoned).isEmpty)
      assert((threads -- others).isEmpty)
    }
  }
}

class FailingPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = throw new IllegalStateException("does not start")
  override def executorPlugin(): ExecutorPlugin = null
}
