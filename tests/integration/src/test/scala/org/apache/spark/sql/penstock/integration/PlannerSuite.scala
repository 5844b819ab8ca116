package org.apache.spark.sql.penstock.integration

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}
import java.util.UUID
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.Row
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.{count, lit}
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Encoders, classic}

import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.control.Measured
import io.penstock.sidecars.planner.{FrameKind, PlanMessages, PlannerFrame, PlannerSidecar}
import io.penstock.{Patience, SameOnEverySpark}
import org.scalatest.funsuite.AnyFunSuite

/** `penstock.tasks=auto` with plans of the real sidecar, and with sidecars that fail. Answers are always right. */
@SameOnEverySpark
class PlannerSuite extends AnyFunSuite with OneApplicationAtATime with Patience {
  private val rowsPerBatch = 100
  private val limit = 2.minutes

  /** A query whose number of tasks is planned. */
  private class Running(session: classic.SparkSession, options: Map[String, String]) {
    private val source = MemoryStream[Long](Encoders.scalaLong, session)
    private var batches = 0
    val query: StreamingQuery = source.toDF().groupBy("value").agg(count(lit(1)).as("n")).writeStream
      .outputMode("complete")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .option("penstock.tasks", "auto")
      .options(options)
      .queryName("counts")
      .format("memory")
      .start()

    /** Runs a batch, whose answer must be right. Returns its number of tasks and the reason. */
    def batch(): (Int, String) = {
      source.addData(1L to rowsPerBatch.toLong)
      query.processAllAvailable()
      batches += 1
      assert(session.table("counts").collect().map(_.getLong(1)).toSeq == Seq.fill(rowsPerBatch)(batches.toLong))
      val region = ReportedRegion.withState(query.recentProgress.toSeq).last.observedMetrics.get("penstock")
        .getSeq[Row](4).head
      (region.getAs[Int]("tasks"), region.getAs[String]("tasksReason"))
    }

    /** Reasons for the numbers of tasks of the batches so far. */
    val reasons = scala.collection.mutable.Set[String]()

    /** Number of tasks of the batch before the newest one. */
    var tasksBefore = 0

    /** Runs batches until the reason of one satisfies `isWanted`. */
    def batchesUntil(wanted: String)(isWanted: String => Boolean): (Int, String) = {
      // A wrong answer ends the wait.
      val found = eventually(timeout(limit), interval(100.millis)) {
        val last = Try(batch())
        last.toOption.filterNot { case (_, reason) => isWanted(reason) }.foreach { case (tasks, reason) =>
          tasksBefore = tasks
          reasons += reason
          fail(s"no batch with $wanted; the last one: $last")
        }
        last
      }
      found.get
    }
  }

  private def running(python: Path, options: Map[String, String] = Map.empty)(body: Running => Unit): Unit = {
    val running = new Running(withPython(python), options)
    try body(running)
    finally running.query.stop()
  }

  private def isPlan(reason: String): Boolean = reason != "nothing measured yet" && !reason.contains("planner")

  private def withPython(python: Path): classic.SparkSession =
    application(Applications.Plugin ++ Map("spark.penstock.python" -> python.toString, "spark.penstock.shards" -> "16"))

  /** A program in place of Python that runs the given script. Its last argument is the sidecar's folder. */
  private def program(script: String): Path = {
    val file = newDirectory("program").resolve("sidecar")
    Files.writeString(file, s"#!${CommandLine.python}\n$script\n")
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"))
  }

  private def sidecars: Seq[ProcessHandle] = ProcessHandle.current().children().iterator().asScala
    .filter(_.info().commandLine().orElse("").contains("penstock.sidecars.planner")).toSeq

  test("plans have reasons, and no sidecar outlives its application") {
    running(CommandLine.python) { running =>
      assert(sidecars.isEmpty, "a sidecar runs before a query asks for plans")
      assert(running.batch() == ((2, "nothing measured yet")))
      val (tasks, _) = running.batchesUntil("a plan")(isPlan)
      assert(tasks == 1 || tasks == 2)
      assert(sidecars.size == 1)
      val folder = Path.of(sidecars.head.info().arguments().get().last)
      assert(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)) == "rwx------")
    }
    stop()
    eventually(timeout(limit))(assert(sidecars.isEmpty))
  }

  test("a killed sidecar is restarted, and the number of tasks stays the same meanwhile") {
    running(CommandLine.python) { running =>
      running.batchesUntil("a plan")(isPlan)
      val first = sidecars
      first.foreach(_.destroyForcibly())
      eventually(timeout(limit))(assert(first.forall(!_.isAlive)))
      val (without, _) = running.batchesUntil("no planner")(_.contains("no planner"))
      assert(without == running.tasksBefore)
      running.batchesUntil("a plan again")(isPlan)
      assert(sidecars.size == 1 && sidecars != first)
    }
  }

  private val connected =
    """import os, socket, sys
      |sys.stdin.readline()
      |server = socket.socket(socket.AF_UNIX)
      |server.bind(os.path.join(sys.argv[-1], "driver.sock"))
      |server.listen(1)
      |print("ready", flush=True)
      |connection, _ = server.accept()
      |connection.recv(1 << 16)
      |""".stripMargin

  private val welcomed = connected +
    """from penstock.sidecars.planner.frame import PREFIX_BYTES, Frame, Kind, decode_prefix, decode_rest, encode
      |connection.sendall(encode(Frame(Kind.WELCOME, 1, {})))
      |def read(count):
      |    data = b""
      |    while len(data) < count:
      |        data += connection.recv(count - len(data))
      |    return data
      |prefix = decode_prefix(read(PREFIX_BYTES))
      |question = decode_rest(prefix, read(prefix.head_bytes + prefix.body_bytes))
      |""".stripMargin

  /** A sidecar that answers correctly except for `changes`, with shards on the tasks `placed`, a Python expression. */
  private def plans(changes: String, placed: String = "[0] * 16"): String = welcomed +
    s"""import numpy as np
       |from penstock.sidecars.planner.server import _body
       |head = {name: question.head[name] for name in ("run", "region", "batch", "tasks")}
       |head |= {"reason": "because", "pinned": []} | {$changes}
       |body = _body({"task": np.array($placed)})
       |connection.sendall(encode(Frame(Kind.PLANNED, 2, head, body)))
       |sys.stdin.read()
       |""".stripMargin

  private val failures = Seq(
    ("is not there", "import sys; sys.exit('no such module')", "no such module"),
    ("answers random bytes", connected + "connection.sendall(bytes(1000))", "a frame has an invalid header"),
    ("answers a question with random bytes", welcomed + "connection.sendall(bytes(1000))", "invalid header"),
    ("closes the connection", connected, "it closed the connection"),
    (
      "proposes too many tasks",
      plans("'tasks': 99"),
      "impossible plan: tasks must be a number from 1 to 2, found 99"
    ),
    ("proposes no tasks", plans("'tasks': 0"), "impossible plan: tasks must be a number from 1 to 2, found 0"),
    ("plans another batch", plans("'batch': 77"), "impossible plan: batch must be"),
    ("leaves a shard out", plans("", "[0] * 15"), "impossible plan: column task must have 16 numbers"),
    (
      "places a shard on a task that does not exist",
      plans("", "[0] * 15 + [2]"),
      "impossible plan: a shard is placed on task 2"
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
    )
  )

  failures.foreach { case (behavior, script, reason) =>
    test(s"a sidecar that $behavior costs only the plan") {
      running(program(script), Map("penstock.policy" -> "refine")) { running =>
        val (tasks, _) = running.batchesUntil(reason)(_.contains(reason))
        assert(tasks == 2)
      }
    }
  }

  test("an error while a region is planned is logged once with its location, and the sidecar continues") {
    val script =
      """import sys
        |from pathlib import Path
        |from penstock.sidecars.planner import planner
        |def fails_on_purpose(*_):
        |    raise ZeroDivisionError("on purpose")
        |planner._tasks = fails_on_purpose
        |from penstock.sidecars.planner.__main__ import main
        |sys.exit(main(Path(sys.argv[-1])))
        |""".stripMargin
    Logged.warningsOf(classOf[PlannerSidecar]) { warnings =>
      running(program(script)) { running =>
        running.batchesUntil("the error")(_.contains("the planner refused: ZeroDivisionError: on purpose"))
        val process = sidecars
        (1 to 5).foreach(_ => running.batch())
        assert(process.size == 1 && sidecars == process)
        assert(warnings().count(_.contains("in fails_on_purpose")) == 1)
      }
    }
  }

  private def ask(sidecar: PlannerSidecar, head: => ObjectNode, body: => Array[Byte]): Either[String, PlannerFrame] = {
    val answers = new LinkedBlockingQueue[Either[String, PlannerFrame]]()
    sidecar.ask(FrameKind.Measured, head, body)(answers.add(_): Unit)
    answers.poll(limit.toNanos, TimeUnit.NANOSECONDS)
  }

  test("a question that cannot be sent fails only for its caller") {
    val measured = Measured(new UUID(1, 2), 0L, 3L, 1, 1, 1.0, Seq(1.0), Array(1L), Array(1L))
    val sidecar =
      new PlannerSidecar(
        Seq(CommandLine.python.toString, "-m", "penstock.sidecars.planner"),
        "Do this",
        pause = _ => 0L
      )
    def isAnswered =
      ask(sidecar, PlanMessages.head(measured), PlanMessages.body(measured)).exists(_.kind == FrameKind.Planned)
    try {
      assert(isAnswered)
      val process = sidecars
      val long = PlannerFrame.newHead().put("reason", "x" * (2 << 20))
      val failing = Seq[(String, () => Either[String, PlannerFrame])](
        "on purpose" -> (() => ask(sidecar, throw new IllegalStateException("on purpose"), Array.emptyByteArray)),
        "on purpose" -> (() => ask(sidecar, PlannerFrame.newHead(), throw new IllegalStateException("on purpose"))),
        "too long" -> (() => ask(sidecar, long, Array.emptyByteArray))
      )
      failing.foreach { case (error, put) =>
        assert(put().left.exists(why => why.startsWith("the planner was not asked") && why.contains(error)))
        assert(isAnswered)
      }
      assert(process.size == 1 && sidecars == process)
      // Not an exception that callers usually catch. The thread must survive for the next caller.
      assert(ask(sidecar, PlannerFrame.newHead(), throw new NoClassDefFoundError("on purpose")).isLeft)
      assert(isAnswered)
    } finally sidecar.close()
  }

  test("batches do not wait for a hanging sidecar") {
    running(program(welcomed + "sys.stdin.read()")) { running =>
      val (tasks, _) = running.batchesUntil("no answer")(_.contains("it did not answer within 10 s"))
      assert(tasks == 2)
      // The first batch asks. Batches without an answer say so.
      assert(running.reasons == Set("nothing measured yet", "planner late"))
    }
  }
}
