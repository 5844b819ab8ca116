package io.penstock.sidecars.planner

import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import io.penstock.Patience
import io.penstock.control.Measured
import io.penstock.process.BackOff
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** Sidecar processes that fail in various ways. The integration tests cover the planner itself. */
class PlannerSidecarSuite extends AnyFunSuite with Patience {

  /** A sidecar as a shell script: it reads the token and then runs `body`. */
  private def script(body: String): Seq[String] = {
    val file = Files.createTempFile("penstock-planner", ".sh")
    Files.writeString(file, s"read token\n$body\n")
    file.toFile.deleteOnExit()
    Seq("sh", file.toString)
  }

  private def ask(sidecar: PlannerSidecar): Either[String, PlannerFrame] = {
    val answers = new LinkedBlockingQueue[Either[String, PlannerFrame]]()
    sidecar.ask(FrameKind.Measured, PlannerFrame.newHead(), Array.emptyByteArray)(answers.add(_): Unit)
    Option(answers.poll(60, TimeUnit.SECONDS)).getOrElse(fail("no answer"))
  }

  private def withSidecar(command: Seq[String], pause: Int => Long = _ => 0L)(body: PlannerSidecar => Unit): Unit = {
    val sidecar = new PlannerSidecar(command, "Do this", pause)
    try body(sidecar)
    finally sidecar.close()
  }

  private def failsWith(command: Seq[String], error: String): Unit = withSidecar(command) { sidecar =>
    val answer = ask(sidecar)
    assert(answer.left.exists(e => e.startsWith("no planner: ") && e.contains(error) && e.endsWith("Do this")), answer)
  }

  test("a missing program is reported") { failsWith(Seq("/no/such/python"), "No such file") }

  test("a program that exits immediately is reported with the last lines of its output") {
    failsWith(
      script("echo one >&2; echo 'No module named penstock' >&2; exit 1"),
      "it said: one | No module named penstock"
    )
  }

  test("a program that prints something other than ready is reported") { failsWith(script("echo hello"), "hello") }

  test("a program that is ready but does not listen is reported") { failsWith(script("echo ready"), "No such file") }

  test("a program that is starting while its sidecar is closed ends") {
    val folder = Files.createTempDirectory("penstock-planner")
    val (pid, goOn) = (folder.resolve("pid"), folder.resolve("go-on"))
    val sidecar = new PlannerSidecar(
      script(s"echo $$$$ > $pid; while [ ! -e $goOn ]; do sleep 0.01; done; echo ready; cat"),
      "Do this"
    )
    sidecar.ask(FrameKind.Measured, PlannerFrame.newHead(), Array.emptyByteArray)(_ => ())
    def soon(check: => Boolean): Unit = eventually(timeout(60.seconds), interval(10.millis))(assert(check))
    soon(Files.exists(pid) && Files.readString(pid).nonEmpty)
    val closing = new Thread(() => sidecar.close())
    closing.start()
    // The sidecar's thread was interrupted by then.
    soon(closing.getState == Thread.State.TIMED_WAITING)
    Files.createFile(goOn)
    closing.join()
    soon(!ProcessHandle.of(Files.readString(pid).trim.toLong).isPresent && sidecar.liveThreads == 0)
  }

  test("a failed sidecar is restarted, but not before its pause is over") {
    val log = Files.createTempFile("penstock-planner", ".log")
    val command = script(s"echo started >> $log; exit 1")
    withSidecar(command, failures => if (failures < 3) 0L else 3600000L) { sidecar =>
      (1 to 10).foreach(_ => assert(ask(sidecar).isLeft))
      assert(Files.readAllLines(log).size == 3)
    }
    Files.delete(log)
  }

  test("pauses between restarts double, up to a minute") {
    assert((1 to 8).map(BackOff.pauseMs) == Seq(1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000))
    assert(BackOff.pauseMs(1000) == 60000)
  }

  test("callers never wait, and excess questions get a late answer") {
    withSidecar(script("sleep 2; exit 1")) { sidecar =>
      val answers = new LinkedBlockingQueue[Either[String, PlannerFrame]]()
      (1 to 100).foreach { _ =>
        sidecar.ask(FrameKind.Measured, PlannerFrame.newHead(), Array.emptyByteArray)(answers.add(_): Unit)
      }
      assert(answers.size >= 100 - 66 && answers.peek() == Left("planner late"))
    }
  }

  test("a plan from before a failure is not used forever") {
    withSidecar(Seq("/no/such/python")) { sidecar =>
      val planner = new SidecarPlanner(sidecar)
      val run = new UUID(1, 1)
      assert(planner.plan(run, 0) == Left("nothing measured yet"))
      planner.learn(Measured(run, 0, 0, 1, 1, 1.0, Seq(1.0), Array(1L), Array(1L)))
      eventually(assert(planner.plan(run, 0) != Left("planner late")))
      assert(planner.plan(run, 0).left.exists(_.contains("no planner")))
    }
  }
}
