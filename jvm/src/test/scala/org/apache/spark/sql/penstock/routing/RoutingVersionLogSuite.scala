package org.apache.spark.sql.penstock.routing

import java.nio.file.{Files, Path}

import scala.collection.immutable.SortedMap

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.errors.PenstockException
import io.penstock.routing.RoutingVersion
import io.penstock.sharding.Layout
import io.penstock.state.format.FileFormat
import org.scalatest.funsuite.AnyFunSuite

class RoutingVersionLogSuite extends AnyFunSuite {
  private def inScratch(body: Path => Unit): Unit = {
    val dir = Files.createTempDirectory("penstock-versions")
    try body(dir)
    finally org.apache.commons.io.FileUtils.deleteDirectory(dir.toFile)
  }

  private val conf = new Configuration()
  conf.set("spark.sql.streaming.checkpointFileManagerClass", classOf[io.penstock.LocalCheckpointFileManager].getName)

  private def log(root: Path, retain: Int = 100) =
    new RoutingVersionLog(new StateDirectory(root.toString, conf), retain)

  private def n(tasks: Int) = SortedMap(0L -> tasks)

  private def files(root: Path): Set[String] =
    root.resolve("_penstock/epochs").toFile.list().filterNot(_.startsWith(".")).toSet

  test("a routing version is durable when append returns, for this log and the next") {
    inScratch { root =>
      val first = log(root)
      assert(first.all.isEmpty && first.inForce(0).isEmpty)
      assert(first.append(0, 256, n(4)).number == 0 && first.append(5, 256, n(8)).number == 1)
      assert(files(root) == Set("0", "1"))
      Seq(first, log(root)).foreach { l =>
        assert(l.all.map(e => (e.number, e.firstBatch, e.tasks(0))) == Seq((0, 0, 4), (1, 5, 8)))
        assert(Seq(0L, 4L, 5L, 99L).map(b => l.inForce(b).get.number) == Seq(0, 0, 1, 1))
        assert(l.settled(3) && l.settled(5) && !l.settled(6))
      }
    }
  }

  test("a routing version written by 0.1.0 is read, and the next one continues it") {
    inScratch { root =>
      log(root).append(0, 256, n(4), perCore = Set(0L))
      val file = root.resolve("_penstock/epochs/0")
      val body = Files.readAllBytes(file).drop(FileFormat.HeaderBytes).dropRight(1)
      val before = FileFormat.frame(FileFormat.Kind.RoutingVersion, body)
      before(8) = 2
      Files.write(file, before)
      val l = log(root)
      assert(l.all == Seq(RoutingVersion(0, 0, 256, n(4))))
      l.append(1, 256, n(4), perCore = Set(0L))
      assert(log(root).all.map(_.perCore) == Seq(Set.empty, Set(0L)))
    }
  }

  test("routing versions that no retained batch uses are deleted, so the number of files is bounded") {
    inScratch { root =>
      val l = log(root, retain = 10)
      (0 until 200).foreach { b =>
        l.append(b, 256, n(b % 5 + 1))
        l.clean(b)
        assert(files(root).size <= 11 && l.all.size <= 11)
      }
      assert(l.inForce(189).get.firstBatch == 189)
      assert(log(root).inForce(195).get.firstBatch == 195)
    }
  }

  test("the routing version in force is kept, however old it is") {
    inScratch { root =>
      val l = log(root, retain = 2)
      l.append(0, 16, n(4))
      l.clean(1000)
      assert(log(root).inForce(1000).get.tasks == n(4))
    }
  }

  test("the newest started version is in force, even if it starts with or before another one") {
    inScratch { root =>
      val l = log(root, retain = 3)
      Seq(0L -> 1, 5L -> 2, 5L -> 3, 4L -> 4).foreach { case (batch, tasks) => l.append(batch, 256, n(tasks)) }
      assert(Seq(3L, 4L, 5L).map(b => l.inForce(b).get.tasks(0)) == Seq(1, 4, 4))
      l.clean(7)
      assert(files(root) == Set("3") && log(root).inForce(5).get.tasks(0) == 4)
    }
  }

  test("pinned hashes are stored in the log") {
    inScratch { root =>
      val layout = Layout(256).pinning(Set(7, -9))
      log(root).append(0, 256, n(4), Map(0L -> layout.pinSlots))
      assert(log(root).inForce(0).get.layout(0) == layout && log(root).inForce(0).get.layout(1) == Layout(256))
    }
  }

  test("a damaged or misplaced file is rejected by name") {
    inScratch { root =>
      log(root).append(0, 16, n(4))
      val file = root.resolve("_penstock/epochs/0")
      val bytes = Files.readAllBytes(file)
      Files.move(file, file.resolveSibling("7"))
      val moved = intercept[PenstockException](log(root))
      assert(moved.errorClass == "PENSTOCK_CORRUPT_FILE" && moved.detail.contains("epochs/7"))
      Files.delete(file.resolveSibling("7"))
      bytes(22) = (bytes(22) + 1).toByte
      Files.write(file, bytes)
      val damaged = intercept[PenstockException](log(root))
      assert(damaged.errorClass == "PENSTOCK_CORRUPT_FILE" && damaged.detail.contains("epochs/0"))
      bytes(8) = 4
      Files.write(file, bytes)
      assert(intercept[PenstockException](log(root)).errorClass == "PENSTOCK_NEWER_FORMAT")
    }
  }

  test("of two runs on one checkpoint, the second writer gets an error") {
    inScratch { root =>
      val (a, b) = (log(root), log(root))
      a.append(0, 16, n(4))
      val e = intercept[PenstockException](b.append(0, 16, n(2)))
      assert(e.errorClass == "PENSTOCK_CONCURRENT_RUN" && e.detail.contains("epochs/0"))
    }
  }
}
