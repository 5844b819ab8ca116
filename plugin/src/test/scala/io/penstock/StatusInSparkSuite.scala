package io.penstock

import java.net.URI
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.file.Files

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.{Encoders, SparkSession}

import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/**
 * The tab in Spark's UI and its JSON, for running queries. Events reach listeners a little later than the query's own
 * thread.
 */
class StatusInSparkSuite extends AnyFunSuite with BeforeAndAfterAll with Patience {
  private lazy val spark = SparkSession.builder().master("local[2]").appName("status")
    .config("spark.ui.port", "0")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.metrics.conf.*.sink.prometheusServlet.class", "org.apache.spark.metrics.sink.PrometheusServlet")
    .config("spark.metrics.conf.*.sink.prometheusServlet.path", "/metrics/prometheus")
    .config("spark.plugins", "io.penstock.PenstockPlugin").config("spark.penstock.shards", "8").getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private def get(path: String): HttpResponse[String] = {
    val client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build()
    client.send(
      HttpRequest.newBuilder(URI.create(spark.sparkContext.uiWebUrl.get + path)).build(),
      BodyHandlers.ofString()
    )
  }

  /** Gauges of a query in Spark's metrics system, by name within its source. */
  private def numbers(query: String): Map[String, Double] = {
    val JObject(gauges) = JsonMethods.parse(get("/metrics/json").body()) \ "gauges": @unchecked
    gauges.flatMap { case (name, value) =>
      value \ "value" match {
        case JDouble(number) if name.contains(s".penstock.$query.") =>
          Some(name.split(s"\\.penstock\\.$query\\.").last -> number)
        // Missing values, for example `executors` if tasks are not divided among executors.
        case _ => None
      }
    }.toMap
  }

  test("the batches, decisions and shards of a query are shown as JSON and as a page") {
    val query = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
      .groupBy("value").count().writeStream.outputMode("update").format("noop").queryName("counts & more")
      .option("checkpointLocation", Files.createTempDirectory("penstock-status").toString).start()
    try {
      val status = eventually {
        val document = JsonMethods.parse(get("/penstock/json?batches=3").body())
        assert(document \ "application" \ "id" == JString(spark.sparkContext.applicationId))
        val found = (document \ "queries")(0)
        assert((found \ "batches").children.size == 3 && (found \ "regions").children.nonEmpty)
        found
      }
      assert(status \ "name" == JString("counts & more") && status \ "runId" == JString(query.runId.toString))
      val region = (status \ "regions")(0)
      assert((region \ "taskOf").children.size == 8 && (region \ "tasks") == JInt(2))
      val JArray(rows) = region \ "rows": @unchecked
      assert(rows.map(_.asInstanceOf[JInt].num.toLong).sum > 0)
      Seq("tasksBusyNs" -> 1, "tasksWaitNs" -> 0).foreach { case (field, least) =>
        val JArray(values) = region \ field: @unchecked
        assert(values.size == 2 && values.forall(_.asInstanceOf[JInt].num.toLong >= least), field)
      }
      // A batch has 100 new keys, and one get and one put for each.
      Seq("stateBytes" -> 1, "keys" -> 100, "operations" -> 200).foreach { case (field, least) =>
        val JArray(values) = region \ field: @unchecked
        assert(values.size == 8 && values.map(_.asInstanceOf[JInt].num.toLong).sum >= least, field)
      }
      val report = (status \ "batches")(2) \ "observedMetrics" \ "penstock"
      val JString(decision) = (report \ "regions")(0) \ "decision": @unchecked
      val page = get("/penstock").body()
      Seq("counts &amp; more", query.runId.toString, "running").foreach(text => assert(page.contains(text), page))
      assert(decision.nonEmpty && page.contains("Imbalance before"))
      val gauges = numbers("counts & more")
      assert(!gauges.contains("region0.executors"))
      assert(gauges("region0.tasks") == 2 && gauges("region0.imbalance") >= 1 && gauges("region0.rows") > 0)
      assert(gauges("store0.default.storeKeys") > 0 && gauges("store0.default.storeOperations") > 0)
      val prometheus = get("/metrics/prometheus").body().linesIterator.filter(_.contains("region0_tasks_Value")).toSeq
      assert(prometheus.size == 1 && prometheus.head.endsWith(" 2.0"), prometheus)
      // The source never produces this key; the page shows the newest batches.
      Penstock.pin(query, -5L)
      eventually(assert(get("/penstock").body().contains("-5 (never seen)")))
    } finally query.stop()
    eventually(assert(numbers("counts & more").isEmpty))
    eventually(assert(get("/penstock").body().contains("ended, run")))
  }

  test("queries with the same name all appear in the metrics system") {
    def started(rows: Int) = {
      val session = spark.newSession()
      val source = MemoryStream[Long](Encoders.scalaLong, session)
      val query =
        source.toDF().groupBy("value").count().writeStream.queryName("twice").outputMode("update").format("noop")
          .start()
      source.addData(1L to rows)
      query.processAllAvailable()
      query
    }
    val first = started(10)
    try {
      eventually(assert(numbers("twice").get("region0.rows").contains(10.0)))
      val second = started(20)
      try {
        val ofSecond = s"${second.runId}.region0.rows"
        eventually(assert(numbers("twice").get(ofSecond).contains(20.0)))
        assert(numbers("twice")("region0.rows") == 10.0)
        first.stop()
        eventually(assert(!numbers("twice").contains("region0.rows")))
        eventually(assert(numbers("twice").get(ofSecond).contains(20.0)))
      } finally second.stop()
      eventually(assert(numbers("twice").isEmpty))
    } finally first.stop()
  }

  test("a request with an invalid parameter is refused with the allowed values") {
    val refused = get("/penstock/json/?batches=all")
    assert(refused.statusCode() == 400 && refused.body().contains("an integer from 0 to 100"), refused.body())
  }
}
