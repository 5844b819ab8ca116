package org.apache.spark.sql.penstock.integration

import java.nio.file.{Files, Path}

import scala.sys.process._

import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.penstock.state.ShardStores

import io.penstock.SameOnEverySpark
import io.penstock.faults.{Fault, FaultPlan, FaultyCheckpointFileManager}
import org.scalatest.funsuite.AnyFunSuite

/** The checkpoint's file system fails for a while: the error says what to do, and afterwards nothing is lost. */
@SameOnEverySpark
class BadDiskSuite extends AnyFunSuite with PenstockApplication {

  /** Enough faults for every attempt of a task to fail. */
  private val times = 8

  private def session(faults: String*): classic.SparkSession = {
    val session = application.newSession()
    val conf = FaultPlan.settings(faults.map(Fault.parse), newDirectory("strikes")) ++
      Map(
        FaultyCheckpointFileManager.ClassKey -> classOf[FaultyCheckpointFileManager].getName,
        FaultyCheckpointFileManager.DelegateKey -> Applications.FastFiles(FaultyCheckpointFileManager.ClassKey),
        "spark.penstock.state.inlineBytes" -> "0"
      )
    conf.foreach { case (key, value) => session.conf.set(key, value) }
    session
  }

  private def assertSurvives(fault: String, words: String*): Unit = {
    val query = new CountingQuery(newDirectory("source"), newDirectory("checkpoint"))
    assert(query.runOn(session())._1 == query.expected)
    // State in the memory of this JVM would not be read again.
    ShardStores.current.dropAll()
    val error = intercept[Exception](query.runOn(session(Seq.fill(times)(fault): _*)))
    assert(Errors.missing(error, words: _*).isEmpty)
    assert(query.runOn(session())._1 == query.expected)
  }

  test("a query continues after a manifest could not be written") {
    assertSurvives(
      "publish manifests/* fail",
      "PENSTOCK_CANNOT_WRITE",
      "manifests/1.",
      "No batch that was committed is lost"
    )
  }

  test("a query continues after changelogs could not be written") {
    assertSurvives("create changelogs/* fail", "PENSTOCK_CANNOT_WRITE", "changelogs/1-", "restore the permission")
  }

  test("a query continues after routing versions could not be read") {
    assertSurvives("open epochs/* fail", "PENSTOCK_CANNOT_READ", "epochs/0", "Nothing is lost")
  }

  /** Runs `use` with a separate file system in memory. */
  private def withDisk(sizeMb: Int)(use: Path => Unit): Unit = {
    val disk = newDirectory("disk")
    assume(s"mount -t tmpfs -o size=${sizeMb}m tmpfs $disk".!(ProcessLogger(_ => ())) == 0, "needs the right to mount")
    try use(disk)
    finally s"umount $disk".!
  }

  test("a query continues after its file system was full") {
    withDisk(4) { disk =>
      val query = new CountingQuery(newDirectory("source"), disk.resolve("checkpoint"))
      assert(query.runOn(session())._1 == query.expected)
      val ballast = disk.resolve("ballast")
      fill(ballast)
      intercept[Exception](query.runOn(session()))
      Files.delete(ballast)
      assert(query.runOn(session())._1 == query.expected)
    }
  }

  test("a query continues after its file system was read-only") {
    withDisk(64) { disk =>
      val stream = new CountingStream(session(), disk.resolve("checkpoint"))
      val first = stream.start()
      stream.add(1L to 20L)
      first.processAllAvailable()
      assert(s"mount -o remount,ro $disk".! == 0)
      stream.add(1L to 20L)
      // Spark's own log fails first.
      val error = intercept[Exception](first.processAllAvailable())
      assert(Errors.missing(error, "Read-only file system").isEmpty)
      assert(s"mount -o remount,rw $disk".! == 0)
      val second = stream.start()
      try {
        second.processAllAvailable()
        assert(stream.counts == Seq.fill(20)(2L))
      } finally second.stop()
    }
  }

  private def fill(file: Path): Unit = {
    val out = Files.newOutputStream(file)
    try while (true) out.write(new Array[Byte](1024))
    catch { case _: java.io.IOException => }
    finally
      try out.close()
      catch { case _: java.io.IOException => }
  }
}
