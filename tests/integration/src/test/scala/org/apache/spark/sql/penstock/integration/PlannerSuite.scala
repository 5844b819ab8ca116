package org.apache.spark.sql.penstock.integration

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Encoders, classic}

import org.scalatest.funsuite.AnyFunSuite

/** `penstock.tasks=auto`: plans of the real sidecar, and of one that fails in every way. Answers are always right. */
class PlannerSuite extends AnyFunSuite with OneApplicationAtATime {
  private val rowsPerBatch = 100
  private val PatienceNs = 120000000000L

  /** A query whose number of tasks is planned. */
  private class Running(session: classic.SparkSession) {
    private val source = MemoryStream[Long](Encoders.scalaLong, session)
    private var batches = 0
    val query: StreamingQuery = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .option("penstock.tasks", "auto")
      .queryName("counts")
      .format("memory")
      .start()

    /** Runs a batch, whose answer must be right; returns its number of tasks, and the reason. */
    def batch(): (Int, String) = {
      source.addData(1L to rowsPerBatch.toLong)
      query.processAllAvailable()
      batches += 1
      assert(session.table("counts").collect().map(_.getLong(1)).toSeq == Seq.fill(rowsPerBatch)(batches.toLong))
      val region = ReportedRegion.withState(query.recentProgress.toSeq).last.observedMetrics.get("penstock")
        .getSeq[Row](4).head
      (region.getAs[Int]("tasks"), region.getAs[String]("tasksReason"))
    }

    /** Runs batches until the reason of one is as wanted. */
    def batchesUntil(what: String)(isWanted: String => Boolean): (Int, String) = {
      val until = System.nanoTime() + PatienceNs
      var last = batch()
      while (!isWanted(last._2)) {
        assert(System.nanoTime() < until, s"no batch with $what; the last one: $last")
        Thread.sleep(100)
        last = batch()
      }
      last
    }
  }

  private def running(python: Path)(body: Running => Unit): Unit = {
    val running = new Running(withPython(python))
    try body(running)
    finally running.query.stop()
  }

  private def isPlan(reason: String): Boolean = reason != "nothing measured yet" && !reason.contains("planner")

  private def withPython(python: Path): classic.SparkSession =
    application(Applications.Plugin ++ Map("spark.penstock.python" -> python.toString, "spark.penstock.shards" -> "16"))

  /** A program in the place of Python that behaves as the script says; it is given `-m penstock.sidecar FOLDER`. */
  private def program(script: String): Path = {
    val file = newDirectory("program").resolve("sidecar")
    Files.writeString(file, s"#!${CommandLine.python}\n$script\n")
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"))
  }

  private def sidecars: Seq[ProcessHandle] = ProcessHandle.current().children().iterator().asScala
    .filter(_.info().commandLine().orElse("").contains("penstock.sidecar")).toSeq

  /** Waits for what happens beside the query. */
  private def eventually(what: String)(holds: => Boolean): Unit = {
    val until = System.nanoTime() + PatienceNs
    while (!holds) {
      assert(System.nanoTime() < until, s"not within two minutes: $what")
      Thread.sleep(20)
    }
  }

  test("plans come with reasons, and no sidecar outlives its application") {
    running(CommandLine.python) { running =>
      assert(sidecars.isEmpty, "a sidecar runs before a query asks for plans")
      assert(running.batch() == ((2, "nothing measured yet")))
      val (tasks, _) = running.batchesUntil("a plan")(isPlan)
      assert(tasks == 1 || tasks == 2)
      assert(sidecars.size == 1)
    }
    stop()
    eventually("the sidecar's end")(sidecars.isEmpty)
  }

  test("a sidecar that is killed is started again, and the query goes on") {
    running(CommandLine.python) { running =>
      running.batchesUntil("a plan")(isPlan)
      val first = sidecars
      first.foreach(_.destroyForcibly())
      eventually("its end")(first.forall(!_.isAlive))
      running.batchesUntil("no planner")(_.contains("no planner"))
      running.batchesUntil("a plan again")(isPlan)
      assert(sidecars.size == 1 && sidecars != first)
    }
  }

  private val connected =
    """import os, socket, sys
      |sys.stdin.readline()
      |server = socket.socket(socket.AF_UNIX)
      |server.bind(os.path.join(sys.argv[3], "driver.sock"))
      |server.listen(1)
      |print("ready", flush=True)
      |connection, _ = server.accept()
      |connection.recv(1 << 16)
      |""".stripMargin

  private val welcomed = connected +
    """from penstock.sidecar.frame import Frame, Kind, encode
      |connection.sendall(encode(Frame(Kind.WELCOME, 1, {})))
      |connection.recv(1 << 20)
      |""".stripMargin

  private val failures = Seq(
    ("is not there", "import sys; sys.exit('no such module')", "no such module"),
    ("answers garbage", connected + "connection.sendall(bytes(1000))", "no frame begins like this"),
    ("closes the connection", connected, "it closed the connection"),
    (
      "proposes tasks that cannot be",
      welcomed + "connection.sendall(encode(Frame(Kind.PLANNED, 2, {'tasks': 99, 'reason': 'because'})))\nsys.stdin.read()",
      "impossible plan"
    ),
    (
      "refuses",
      welcomed + "connection.sendall(encode(Frame(Kind.REFUSED, 2, {'reason': 'not today'})))\nsys.stdin.read()",
      "not today"
    ),
    (
      "answers another question",
      welcomed + "connection.sendall(encode(Frame(Kind.REFUSED, 9, {'reason': 'no'})))\nsys.stdin.read()",
      "answer 9 to question 2"
    ),
    ("hangs", welcomed + "sys.stdin.read()", "it did not answer within 10 s")
  )

  Brief.someOf(failures).foreach { case (what, script, reason) =>
    test(s"a sidecar that $what costs a plan and nothing else") {
      running(program(script)) { running =>
        val (tasks, _) = running.batchesUntil(reason)(_.contains(reason))
        assert(tasks == 2)
      }
    }
  }
}
