package org.apache.spark.sql.penstock.integration

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}

import scala.util.{Failure, Random, Try}

import org.apache.commons.io.FileUtils
import org.apache.spark.sql.penstock.integration.cases.StreamJoinCases
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/** Copied checkpoints: the query continues, and a reader of the state gets all of it or an error. */
@SameOnEverySpark
class TravelledCheckpointSuite extends AnyFunSuite with PenstockApplication {
  private val shards = 16

  override protected def applicationConf: Map[String, String] =
    Applications.FastFiles + ("spark.penstock.shards" -> shards.toString)

  private def written(): CountingQuery = {
    val query = new CountingQuery(newDirectory("source"), newDirectory("parent").resolve("checkpoint"))
    assert(query.runOn(application)._1 == query.expected)
    query
  }

  private def elsewhere(): Path = newDirectory("elsewhere").resolve("copy")

  private def assertReadable(query: CountingQuery, location: String): Unit = {
    assert(query.state(application.newSession()) == query.expected)
    assert(Inspection.verified(location) == (0, Nil))
  }

  /** Moves a checkpoint by `travel` and reads it, before and after the query continues. */
  private def assertTravels(travel: Path => (Path, String)): Unit = {
    val original = written()
    val (checkpoint, location) = travel(original.checkpoint)
    FileUtils.deleteDirectory(original.checkpoint.toFile)
    val query = original.movedTo(checkpoint, location)
    assertReadable(query, location)
    assert(query.runOn(application)._1 == query.expected)
    assertReadable(query, location)
  }

  private def assertTravelsAs(location: Path => String): Unit = assertTravels { from =>
    val to = CheckpointCopy.fileByFile(from, elsewhere())
    (to, location(to))
  }

  test("a copy file by file, without empty folders, is complete")(assertTravelsAs(_.toString))

  test("a 0.1.0 checkpoint copied without empty folders is rejected by readers until the next run") {
    val original = written()
    CheckpointCopy.withoutPartitionFiles(original.checkpoint)
    assertReadable(original, original.checkpoint.toString)
    val copy = CheckpointCopy.fileByFile(original.checkpoint, elsewhere())
    val query = original.movedTo(copy, copy.toString)
    val refused = intercept[Exception](query.state(application.newSession()))
    assert(Errors.missing(refused, "PENSTOCK_PARTITION_FOLDERS", s"$copy/state/0", "1 of 16").isEmpty)
    val (status, problems) = Inspection.verified(copy.toString)
    assert(status == 1 && problems.map(_._1) == Seq("PENSTOCK_PARTITION_FOLDERS"))
    assert(problems.head._2.contains("1 of 16"))
    assert(query.runOn(application)._1 == query.expected)
    assertReadable(query, copy.toString)
    // After the repair the checkpoint can be copied.
    val again = CheckpointCopy.fileByFile(copy, elsewhere())
    assertReadable(query.movedTo(again, again.toString), again.toString)
  }

  test("other time stamps do not matter") {
    assertTravels { from =>
      val to = CheckpointCopy.fileByFile(from, elsewhere())
      CheckpointCopy.paths(to).zipWithIndex.foreach { case (p, i) =>
        Files.setLastModifiedTime(p, FileTime.fromMillis(if (i % 2 == 0) 0L else 4102444800000L))
      }
      (to, to.toString)
    }
  }

  test("a location with a trailing slash works")(assertTravelsAs(to => s"$to/"))

  test("a location with a scheme works")(assertTravelsAs(to => s"file:$to"))

  test("a location with a scheme, an empty authority and a trailing slash works")(assertTravelsAs(to => s"file://$to/"))

  test("a link to the checkpoint works") {
    assertTravels { from =>
      val link = Files.createSymbolicLink(elsewhere(), CheckpointCopy.fileByFile(from, elsewhere()))
      (link, link.toString)
    }
  }

  test("folders that are links work") {
    assertTravels { from =>
      val to = CheckpointCopy.fileByFile(from, elsewhere())
      for (folder <- Seq("state/_penstock/manifests", "state/_penstock", "state/0", "state")) {
        val aside = Files.move(to.resolve(folder), elsewhere())
        Files.createSymbolicLink(to.resolve(folder), aside)
      }
      (to, to.toString)
    }
  }

  test("files of other programs in every folder do not matter") {
    assertTravels { from =>
      val to = CheckpointCopy.fileByFile(from, elsewhere())
      val foreign =
        Seq(".DS_Store", "_SUCCESS", "Thumbs.db", "0.0.crc", "sync.ffs_db", ".0.0.1f2e.tmp", "1.0 (copy)", "0.part")
      CheckpointCopy.paths(to).filter(Files.isDirectory(_)).foreach { folder =>
        foreign.foreach(name => Files.writeString(folder.resolve(name), "of another program"))
      }
      (to, to.toString)
    }
  }

  /**
   * Parts that tools copy one after the other. Older parts of Spark's own logs come first, so that they are consistent.
   */
  private val logs = Seq(Seq("metadata", "commits"), Seq("offsets"), Seq("sources"))
  private val parts = Seq(
    Seq("state/0", "state/_penstock/FORMAT", "state/_penstock/epochs"),
    Seq("state/_penstock/manifests"),
    Seq("state/_penstock/changelogs"),
    Seq("state/_penstock/snapshots")
  )

  test("a copy made during a write continues from its committed batch or is rejected") {
    val random = new Random(TestSeed.of("copied while it was written"))
    val orders = Seq(logs ++ parts, parts ++ logs) ++ Seq.fill(3) {
      val places = random.shuffle((logs ++ parts).indices.toVector)
      val (ofLogs, ofParts) = places.splitAt(logs.size)
      (ofLogs.sorted.zip(logs) ++ ofParts.zip(parts)).sortBy(_._1).map(_._2)
    }
    val session = application.newSession()
    Map(
      "spark.sql.streaming.minBatchesToRetain" -> "4",
      "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "2",
      "spark.penstock.state.inlineBytes" -> "0"
    ).foreach { case (key, value) => session.conf.set(key, value) }
    val original = new CountingQuery(newDirectory("source"), newDirectory("parent").resolve("checkpoint"))
    (1 to 2).foreach(_ => original.runOn(session))
    val copies = orders.map(_ -> elsewhere())
    for (i <- (logs ++ parts).indices) {
      original.runOn(session)
      for ((order, to) <- copies; part <- order(i))
        CheckpointCopy.fileByFile(original.checkpoint.resolve(part), to.resolve(part))
    }
    original.runOn(session)
    val continuedCopies = for ((order, to) <- copies) yield withClue(s"$order, ${TestSeed.clue}: ") {
      val query = original.movedTo(to, to.toString)
      val committed = QueryRun.committed(to).last
      val (status, problems) = Inspection.verified(to.toString)
      val read = Try(query.state(session))
      val continued = Try(query.goOn(session)._1)
      for (Failure(e) <- Seq(read, continued)) assert(Errors.missing(e, "PENSTOCK_").isEmpty)
      read.foreach(state => assert(state == query.expectedOf(committed.toInt + 1)))
      continued.foreach(counts => assert(counts == query.expected && query.state(session) == query.expected))
      assert(status != 0 || (read.isSuccess && continued.isSuccess), problems)
      continued.isSuccess
    }
    assert(continuedCopies.distinct.size == 2, "some copies continue, and some are rejected")
  }

  test("a join's copy without its original is read as plain Spark's")(withClue(TestSeed.clue) {
    val operatorCase = StreamJoinCases.inner
    val seed = TestSeed.of(operatorCase.name)
    val engines = EnginePair.of(operatorCase.stock, shards, seed)
    def copyBy(engine: Engine): Seq[String] = {
      val original = newDirectory("parent").resolve("checkpoint")
      new QueryRun(application, engine, operatorCase, original).play(Script.standard(seed, operatorCase.twoInputs))
      val copy = CheckpointCopy.fileByFile(original, elsewhere())
      FileUtils.deleteDirectory(original.toFile)
      val state = application.newSession().read.format("statestore").option("joinSide", "left").load(copy.toString)
      state.drop("partition_id").collect().map(Rendering.of).sorted.toSeq
    }
    val expected = copyBy(engines.reference)
    assert(expected.nonEmpty && copyBy(engines.subject) == expected)
  })
}
