package org.apache.spark.sql.penstock.integration

import java.nio.file.{Files, Path}
import java.util.UUID

import org.apache.commons.io.FileUtils
import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.SameOnEverySpark
import io.penstock.state.format.{Container, FileFormat, ManifestFormat}
import org.scalatest.funsuite.AnyFunSuite

/** Checkpoints that are used with another application than the one that wrote them. */
@SameOnEverySpark
class BadCheckpointSuite extends AnyFunSuite with OneApplicationAtATime {
  private val shards = "spark.penstock.shards"

  private def withPlugin(shardCount: Int) = application(Applications.Plugin + (shards -> shardCount.toString))

  private def newQuery() = new CountingQuery(newDirectory("source"), newDirectory("checkpoint"))

  private def format(query: CountingQuery): Path = state(query).resolve("FORMAT")

  /** Runs the query with a session in which it must fail, and then with one in which it must continue without loss. */
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

  test("a checkpoint of plain Spark continues as before, and progress says why") {
    val query = newQuery()
    assert(query.runOn(application(Map(Engine.PartitionsKey -> "3")))._1 == query.expected)
    val (counts, progress) = query.runOn(withPlugin(16))
    assert(counts == query.expected)
    assert(progress.flatMap(_.stateOperators).forall(_.numShufflePartitions == 3))
    assert(Engine.recordedConf(query.checkpoint)(Engine.ProviderKey) == Engine.HdfsBacked)
    val reasons = progress.flatMap(batch => Option(batch.observedMetrics.get("penstock"))).map(_.toString)
    assert(reasons.exists(_.contains(Engine.HdfsBacked)), s"what progress shows: $reasons")
  }

  test("a checkpoint of Penstock is rejected without the plugin") {
    val query = penstockQuery()
    val error = refusal(query, application(Map.empty))
    assert(Errors.missing(error, "PENSTOCK_", "spark.plugins", "io.penstock.PenstockPlugin").isEmpty)
  }

  test("a checkpoint with another number of shards is rejected") {
    val query = penstockQuery()
    val error = refusal(query, withPlugin(32))
    assert(Errors.missing(error, "PENSTOCK_SHARDS_CHANGED", "16", "32", shards).isEmpty)
  }

  test("a checkpoint of a newer format is rejected") {
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

  test("a checkpoint of a query without strict distribution is rejected") {
    val query = newQuery()
    val strict = "spark.sql.streaming.statefulOperator.useStrictDistribution"
    query.runOn(application(Map(Engine.PartitionsKey -> "3", strict -> "false")))
    // The checkpoint as an older Spark would have left it if it had known the provider.
    val offsets = query.checkpoint.resolve("offsets").resolve("0")
    replace(offsets, Files.readString(offsets).replace(Engine.HdfsBacked, Engine.PenstockProvider).getBytes)
    val error = intercept[Exception](query.runOn(withPlugin(16)))
    assert(Errors.missing(error, "PENSTOCK_", strict).isEmpty)
  }

  test("with the plugin off for the application, a query of Penstock continues with a task per shard") {
    val query = penstockQuery()
    val off = application(Applications.Plugin ++ Map("spark.penstock.mode" -> "off"))
    val (counts, progress) = query.runOn(off)
    assert(counts == query.expected)
    assert(progress.flatMap(_.stateOperators).forall(_.numStateStoreInstances == 16))
  }

  test("with routing off for the query, a checkpoint of Penstock continues with a task per shard") {
    val query = penstockQuery()
    val (counts, progress) = query.runOn(withPlugin(16), Map("penstock.mode" -> "off"))
    assert(counts == query.expected)
    assert(progress.flatMap(_.stateOperators).forall(_.numStateStoreInstances == 16))
  }

  test("two mixed checkpoints are rejected") {
    val (one, other) = (penstockQuery(), penstockQuery())
    val (state, aside) = (other.checkpoint.resolve("state"), other.checkpoint.resolveSibling("aside"))
    Files.move(state, aside)
    FileUtils.copyDirectory(one.checkpoint.resolve("state").toFile, state.toFile)
    val error = intercept[Exception](other.runOn(withPlugin(16)))
    assert(Errors.missing(
      error,
      "PENSTOCK_OTHER_QUERY",
      "two checkpoints have been mixed",
      "Nothing was changed"
    ).isEmpty)
    FileUtils.deleteDirectory(state.toFile)
    Files.move(aside, state)
    assert(other.runOn(withPlugin(16))._1 == other.expected)
  }

  test("a checkpoint copied during a write is rejected if its logs are newer than its state") {
    val query = penstockQuery()
    (1 to 2).foreach(_ => query.runOn(withPlugin(16)))
    val newest = state(query).resolve("manifests").resolve("2.0")
    val manifest = Files.readAllBytes(newest)
    Files.delete(newest)
    val error = intercept[Exception](query.runOn(withPlugin(16)))
    val words = Seq("PENSTOCK_STATE_MISSING", "state of batch 2", "newest state is that of batch 1", "manifests/2.*")
    assert(Errors.missing(error, words: _*).isEmpty)
    Files.write(newest, manifest)
    assert(query.runOn(withPlugin(16))._1 == query.expected)
  }

  test("a checkpoint copied during a write continues if its state is newer than its logs") {
    val query = penstockQuery()
    query.runOn(withPlugin(16))
    Seq("commits", "offsets").foreach(log => Files.delete(query.checkpoint.resolve(log).resolve("1")))
    assert(query.runOn(withPlugin(16))._1 == query.expected)
  }

  test("of two runs on one checkpoint, the second to write a batch's state gets an error") {
    // With more attempts, the next attempt would write another generation, and Spark's commit log would end the run.
    val session = application(Applications.Plugin + (shards -> "16"), attempts = 1)
    val checkpoint = newDirectory("checkpoint")
    val stream = new CountingStream(session, checkpoint)
    val first = stream.start()
    stream.add(1L to 20L)
    first.processAllAvailable()
    val state = new StateDirectory(checkpoint.resolve("state").toUri.toString, session.sessionState.newHadoopConf())
    val byTheOther = state.readManifest(0L, 0L).copy(batchId = 1L, runId = UUID.randomUUID())
    val place = Container.InManifest(1L, 0L)
    state.write(place.path, FileFormat.Kind.Manifest, ManifestFormat.encode(byTheOther, place), Array(), 0)
    stream.add(1L to 20L)
    val error = intercept[Exception](first.processAllAvailable())
    assert(Errors.missing(error, "PENSTOCK_CONCURRENT_RUN", "manifests/1.0", "Stop the other run").isEmpty)
    val second = stream.start()
    try {
      second.processAllAvailable()
      assert(stream.counts == Seq.fill(20)(2L))
    } finally second.stop()
  }

  private def state(query: CountingQuery): Path = query.checkpoint.resolve("state").resolve("_penstock")

  private def replace(file: Path, content: Array[Byte]): Unit = {
    Files.write(file, content)
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    ()
  }
}
