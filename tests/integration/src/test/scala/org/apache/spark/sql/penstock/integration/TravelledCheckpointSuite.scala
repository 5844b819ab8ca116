package org.apache.spark.sql.penstock.integration

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}

import org.apache.spark.sql.penstock.integration.harness._

import org.scalatest.funsuite.AnyFunSuite

/** Checkpoints that were copied: the query goes on, and whoever reads the state sees all of it or is told why not. */
class TravelledCheckpointSuite extends AnyFunSuite with PenstockApplication {
  override protected def applicationConf: Map[String, String] =
    Applications.FastFiles + ("spark.penstock.shards" -> "16")

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

  /** Brings a checkpoint to where it is told and has it read, before and after the query goes on. */
  private def assertTravels(travel: Path => (Path, String)): Unit = {
    val original = written()
    val (checkpoint, location) = travel(original.checkpoint)
    val query = original.movedTo(checkpoint, location)
    assertReadable(query, location)
    assert(query.runOn(application)._1 == query.expected)
    assertReadable(query, location)
  }

  private def assertTravelsAs(location: Path => String): Unit = assertTravels { from =>
    val to = CheckpointCopy.fileByFile(from, elsewhere())
    (to, location(to))
  }

  test("file by file, without empty folders")(assertTravelsAs(_.toString))

  test("a checkpoint of 0.1.0, without empty folders: a part is not read as the whole, and the next run mends it") {
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
    // From now on it may travel.
    val again = CheckpointCopy.fileByFile(copy, elsewhere())
    assertReadable(query.movedTo(again, again.toString), again.toString)
  }

  test("other time stamps") {
    assertTravels { from =>
      val to = CheckpointCopy.fileByFile(from, elsewhere())
      CheckpointCopy.paths(to).zipWithIndex.foreach { case (p, i) =>
        Files.setLastModifiedTime(p, FileTime.fromMillis(if (i % 2 == 0) 0L else 4102444800000L))
      }
      (to, to.toString)
    }
  }

  test("a trailing slash")(assertTravelsAs(to => s"$to/"))

  test("under a scheme")(assertTravelsAs(to => s"file:$to"))

  test("under a scheme with an empty authority, and a trailing slash")(assertTravelsAs(to => s"file://$to/"))

  test("through a link to the checkpoint") {
    assertTravels { from =>
      val link = Files.createSymbolicLink(elsewhere(), CheckpointCopy.fileByFile(from, elsewhere()))
      (link, link.toString)
    }
  }

  test("with folders that are links") {
    assertTravels { from =>
      val to = CheckpointCopy.fileByFile(from, elsewhere())
      for (folder <- Seq("state/_penstock/manifests", "state/_penstock", "state/0", "state")) {
        val aside = Files.move(to.resolve(folder), elsewhere())
        Files.createSymbolicLink(to.resolve(folder), aside)
      }
      (to, to.toString)
    }
  }

  test("with files of other programs in every folder") {
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
}
