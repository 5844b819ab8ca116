package org.apache.spark.sql.penstock.integration

import java.nio.file.{Files, Path}

import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** Checkpoints that meet another application than the one that wrote them. */
class BadCheckpointSuite extends AnyFunSuite with TestDirectory with BeforeAndAfterEach {
  private val shards = "spark.penstock.shards"
  private var running: Option[classic.SparkSession] = None

  override protected def afterEach(): Unit =
    try stop()
    finally super.afterEach()

  private def stop(): Unit = {
    running.foreach(_.stop())
    running = None
  }

  /** Stops the application that runs and starts another one. */
  private def application(conf: Map[String, String]): classic.SparkSession = {
    stop()
    val session = Applications.start(suiteName, "local[2,4]", newDirectory("warehouse"), Applications.FastFiles ++ conf)
    running = Some(session)
    session
  }

  private def withPlugin(shardCount: Int) = application(Applications.Plugin + (shards -> shardCount.toString))

  private def newQuery() = new CountingQuery(newDirectory("source"), newDirectory("checkpoint"))

  private def format(query: CountingQuery): Path =
    query.checkpoint.resolve("state").resolve("_penstock").resolve("FORMAT")

  /** Runs the query where it must fail, and then where it must be as if it had not: nothing is lost. */
  private def refusal(query: CountingQuery, session: classic.SparkSession): Throwable = {
    val error = intercept[Exception](query.runOn(session))
    val (counts, _) = query.runOn(withPlugin(16))
    assert(counts == query.expected)
    error
  }

  private def penstockQuery(): CountingQuery = {
    val query = newQuery()
    assert(query.runOn(withPlugin(16))._1 == query.expected)
    assert(Engine.recordedConf(query.checkpoint)(Engine.ProviderKey) == Engine.PenstockProvider)
    assert(Engine.recordedConf(query.checkpoint)(Engine.PartitionsKey) == "16")
    query
  }

  test("a checkpoint of plain Spark goes on as before, and progress says why") {
    val query = newQuery()
    assert(query.runOn(application(Map(Engine.PartitionsKey -> "3")))._1 == query.expected)
    val (counts, progress) = query.runOn(withPlugin(16))
    assert(counts == query.expected)
    assert(progress.flatMap(_.stateOperators).forall(_.numShufflePartitions == 3))
    assert(Engine.recordedConf(query.checkpoint)(Engine.ProviderKey) == Engine.HdfsBacked)
    val reasons = progress.flatMap(batch => Option(batch.observedMetrics.get("penstock"))).map(_.toString)
    assert(reasons.exists(_.contains(Engine.HdfsBacked)), s"what progress shows: $reasons")
  }

  test("a checkpoint of Penstock without the plugin") {
    val query = penstockQuery()
    val error = refusal(query, application(Map.empty))
    assert(Errors.missing(error, "PENSTOCK_", "spark.plugins", "io.penstock.PenstockPlugin").isEmpty)
  }

  test("a checkpoint of Penstock with another number of shards") {
    val query = penstockQuery()
    val error = refusal(query, withPlugin(32))
    assert(Errors.missing(error, "PENSTOCK_SHARDS_CHANGED", "16", "32", shards).isEmpty)
  }

  test("a checkpoint of a newer format") {
    val query = penstockQuery()
    val original = Files.readAllBytes(format(query))
    val newer = original.clone()
    newer(8) = (newer(8) + 1).toByte
    val error = intercept[Exception] {
      replace(format(query), newer)
      query.runOn(withPlugin(16))
    }
    assert(Errors.missing(error, "PENSTOCK_NEWER_FORMAT", "FORMAT").isEmpty)
    replace(format(query), original)
    assert(query.runOn(withPlugin(16))._1 == query.expected)
  }

  test("a checkpoint whose query had no strict distribution") {
    val query = newQuery()
    val strict = "spark.sql.streaming.statefulOperator.useStrictDistribution"
    query.runOn(application(Map(Engine.PartitionsKey -> "3", strict -> "false")))
    // The same checkpoint as an older Spark would have left it, had it known the provider.
    val offsets = query.checkpoint.resolve("offsets").resolve("0")
    replace(offsets, Files.readString(offsets).replace(Engine.HdfsBacked, Engine.PenstockProvider).getBytes)
    val error = intercept[Exception](query.runOn(withPlugin(16)))
    assert(Errors.missing(error, "PENSTOCK_", strict).isEmpty)
  }

  test("the plugin switched off for the application: a query that began with Penstock goes on, a task per shard") {
    val query = penstockQuery()
    val off = application(Applications.Plugin ++ Map("spark.penstock.mode" -> "off"))
    val (counts, progress) = query.runOn(off)
    assert(counts == query.expected)
    assert(progress.flatMap(_.stateOperators).forall(_.numStateStoreInstances == 16))
  }

  test("a checkpoint of Penstock with routing switched off for the query: a task runs a shard") {
    val query = penstockQuery()
    val (counts, progress) = query.runOn(withPlugin(16), Map("penstock.mode" -> "off"))
    assert(counts == query.expected)
    assert(progress.flatMap(_.stateOperators).forall(_.numStateStoreInstances == 16))
  }

  private def replace(file: Path, content: Array[Byte]): Unit = {
    Files.write(file, content)
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    ()
  }
}
