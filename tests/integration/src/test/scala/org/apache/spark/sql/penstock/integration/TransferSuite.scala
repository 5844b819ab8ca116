package org.apache.spark.sql.penstock.integration

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.concurrent.{Executors, LinkedBlockingQueue, TimeUnit}

import scala.concurrent.duration._
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.spark.sql.penstock.integration.harness.{CommandLine, TestDirectory}

import io.penstock.process.SidecarCommand
import io.penstock.sidecars.transfer._
import io.penstock.{Patience, SameOnEverySpark}
import org.scalatest.funsuite.AnyFunSuite

/** The executor's side of real sidecars, which carry questions between executors. */
@SameOnEverySpark
class TransferSuite extends AnyFunSuite with Patience with TestDirectory {
  private val command = Seq(CommandLine.python.toString, "-m", "penstock.sidecars.transfer")
  private val limitMs = 20000
  private val secret = "of one application".getBytes(UTF_8)
  private val TemporaryFolder = "java.io.tmpdir"
  private val SharedMemory = Path.of("/dev/shm")

  private def settings(transport: String) =
    TransferSettings(secret, "127.0.0.1", transport, encrypted = false, authenticated = false, channels = 2)

  /** Answers a question for a number with as many bytes, in two parts. */
  private object Numbers extends AnswerSource {
    override def give(question: Array[Byte]): Either[String, Message] =
      new String(question, UTF_8).toInt match {
        case n if n < 0 => Left("there is nothing of that size")
        case 13 => throw new IllegalStateException("a source that fails")
        case n =>
          val all = pattern(n)
          Right(new Message {
            override def bytes: Long = n.toLong
            override def writeTo(out: MessageOut): Unit = {
              out.put(all, 0, n / 3)
              if (n == 17) throw new IllegalStateException("an answer that fails")
              out.put(all, n / 3, n - n / 3)
            }
          })
      }
  }

  private def pattern(n: Int): Array[Byte] = Array.tabulate(n)(i => (i * 31 + i / 251).toByte)

  private def question(n: Int): Array[Byte] = n.toString.getBytes(UTF_8)

  /** A sidecar with its introductions. */
  private class Executor(transport: String, program: Seq[String] = command) extends AutoCloseable {
    private val introductions = new LinkedBlockingQueue[Option[Introduction]]()
    val sidecar =
      new TransferSidecar(program, settings(transport), Numbers, "Do this", introductions.add(_): Unit, _ => 100L)

    def ask(peer: Introduction, n: Int): Outcome[Seq[Byte]] =
      sidecar.ask(peer.addresses, question(n), limitMs)((in, by) => {
        assert(transport == "auto" || by == transport)
        in.takeAll().toSeq
      })

    def introduced(): Introduction = Iterator.continually(next()).flatten.next()

    def next(): Option[Introduction] =
      Option(introductions.poll(60, TimeUnit.SECONDS)).getOrElse(fail("nothing was introduced"))

    override def close(): Unit = sidecar.close()
  }

  private def sidecars: Seq[ProcessHandle] = ProcessHandle.current().children().iterator().asScala
    .filter(_.info().commandLine().orElse("").contains("penstock.sidecars.transfer")).toSeq

  /** Files of channel memory that this process has mapped. */
  private def channels: Set[String] = Files.readAllLines(Path.of("/proc/self/maps")).asScala
    .filter(_.contains("penstock-channel")).map(_.split(" +")(4)).toSet

  private def files(folder: Path): Set[String] =
    Using.resource(Files.list(folder))(_.iterator.asScala.map(_.getFileName.toString).toSet)

  /** Runs `body` with another folder for temporary files. */
  private def withTemporaryFolder[A](folder: Path)(body: => A): A = {
    val usual = System.setProperty(TemporaryFolder, folder.toString)
    try body
    finally System.setProperty(TemporaryFolder, usual): Unit
  }

  private def answer[A](outcome: Outcome[A]): A = outcome match {
    case Outcome.Here(value) => value
    case other => fail(other.toString)
  }

  Seq("local", "tcp").foreach { transport =>
    test(s"$transport: an answer of another executor arrives complete") {
      Using.resources(new Executor(transport), new Executor(transport)) { (one, other) =>
        one.introduced()
        val peer = other.introduced()
        assert(peer.addresses.contains(transport) && peer.missing.contains("mpi"))
        Seq(0, 1, ExecutorChannel.SliceBytes - 1, ExecutorChannel.SliceBytes, 20000000).foreach { n =>
          assert(answer(one.ask(peer, n)) == pattern(n).toSeq)
        }
        assert(one.ask(peer, -1) == Outcome.Refused("there is nothing of that size"))
        assert(one.ask(peer, 13).toString.contains("a source that fails"))
        // No byte of the answer had arrived when it failed.
        assert(one.ask(peer, 17) == Outcome.Refused("the executor gave up"))
        // Unread parts of an answer do not block later ones, even if the reader fails.
        val taken = one.sidecar.ask(peer.addresses, question(3000000), limitMs)((in, _) => in.take(1000).toSeq)
        assert(answer(taken) == pattern(3000000).toSeq.take(1000))
        assert(intercept[IllegalStateException](one.sidecar.ask(peer.addresses, question(3000000), limitMs) { (in, _) =>
          in.take(1000000)
          throw new IllegalStateException("a reader that fails")
        }).getMessage == "a reader that fails")
        val threads = Executors.newFixedThreadPool(6)
        implicit val context: ExecutionContext = ExecutionContext.fromExecutor(threads)
        val sizes = (1 to 30).map(_ * 100003)
        val all = Future.traverse(sizes)(n => Future(answer(one.ask(peer, n))))
        assert(Await.result(all, 60.seconds) == sizes.map(pattern(_).toSeq))
        threads.shutdown()
      }
      assert(sidecars.isEmpty)
    }
  }

  test("a lost peer is reported, and reachable again after its restart") {
    Using.resources(new Executor("auto"), new Executor("auto")) { (one, other) =>
      one.introduced()
      val before = other.introduced()
      assert(answer(one.ask(before, 5)) == pattern(5).toSeq)
      // It is not known which sidecar belongs to which executor, so both are restarted.
      sidecars.foreach(_.destroyForcibly())
      assert(Seq(one, other).forall(_.next().isEmpty), "the end of a sidecar is reported")
      one.introduced()
      val again = other.introduced()
      assert(one.ask(before, 5).isInstanceOf[Outcome.Lost])
      assert(answer(one.ask(again, 5)) == pattern(5).toSeq)
    }
  }

  test("channel memory is passed on to the next sidecar, even while questions are asked") {
    // Channels of earlier tests are still waiting for the garbage collector.
    val before = channels
    Using.resources(new Executor("local"), new Executor("local")) { (one, other) =>
      var peer = Seq(one, other).map(_.introduced()).last
      val known = channels -- before
      val asked = new java.util.concurrent.atomic.AtomicReference(peer)
      @volatile var enough = false
      val asking = new Thread(() => {
        // While sidecars restart, TCP may carry the answer.
        def ask() = one.sidecar.ask(asked.get.addresses, question(5000000), limitMs)((in, _) => in.takeAll().toSeq)
        while (!enough) {
          // An error ends the wait.
          val answered = eventually(timeout(2.minutes)) {
            val answered = Try(ask())
            assert(enough || answered.fold(_ => true, _.isInstanceOf[Outcome.Here[_]]))
            answered
          }
          answered.get match {
            case Outcome.Here(value) => assert(value == pattern(5000000).toSeq)
            case _ => ()
          }
        }
      })
      asking.setDaemon(true)
      var failure: Option[Throwable] = None
      asking.setUncaughtExceptionHandler((_, e) => failure = Some(e))
      asking.start()
      (1 to 6).foreach { _ =>
        sidecars.foreach(_.destroyForcibly())
        assert(Seq(one, other).forall(_.next().isEmpty))
        peer = Seq(one, other).map(_.introduced()).last
        asked.set(peer)
        assert(answer(one.ask(peer, 100000)) == pattern(100000).toSeq)
      }
      enough = true
      asking.join(60000)
      assert(failure.isEmpty && !asking.isAlive)
      // Two executors with two channels in each direction. A channel whose user noticed the restart late may be
      // replaced.
      assert(known.size == 8 && (channels -- before).size <= known.size + 4)
      assert(answer(one.ask(peer, 20000000)) == pattern(20000000).toSeq)
    }
  }

  Seq("local", "tcp").foreach { transport =>
    test(s"$transport: interrupting a task that asks does not cost the sidecar") {
      Using.resources(new Executor(transport), new Executor(transport)) { (one, other) =>
        one.introduced()
        val peer = other.introduced()
        val running = sidecars.map(_.pid).toSet
        val seed = 20261126
        info(s"seed $seed")
        val random = new scala.util.Random(seed)
        @volatile var ended = 0
        (1 to 60).foreach { _ =>
          val task = new Thread(() => {
            try
              while (!Thread.currentThread().isInterrupted) one.ask(peer, 3000000) match {
                case Outcome.Here(value) => assert(value.size == 3000000)
                case _ => assert(Thread.currentThread().isInterrupted)
              }
            catch { case _: InterruptedException => () }
            ended += 1
          })
          task.start()
          // Part of the fault: the task is interrupted at any moment of its questions.
          Thread.sleep(random.nextInt(40).toLong)
          task.interrupt()
          task.join(30000)
          assert(!task.isAlive)
        }
        assert(ended == 60)
        assert(sidecars.map(_.pid).toSet == running)
        assert(answer(one.ask(peer, 20000000)) == pattern(20000000).toSeq)
      }
    }
  }

  test("no files are left, whatever ends first") {
    val temporary = newDirectory("temporary")
    val before = files(SharedMemory)
    // Other processes of this machine may have shared memory for a moment.
    def nothingLeft() =
      files(temporary).isEmpty && holdsWithin(patienceConfig.timeout)((files(SharedMemory) -- before).isEmpty)
    withTemporaryFolder(temporary) {
      val executor = new Executor("auto")
      executor.introduced()
      assert(answer(executor.sidecar.echo(question(7), limitMs)).toSeq == question(7).toSeq)
      assert(nothingLeft(), "while the sidecar runs, it keeps no files that could be left behind")
      sidecars.foreach(_.destroyForcibly())
      assert(executor.next().isEmpty)
      executor.close()
    }
    assert(sidecars.isEmpty && nothingLeft())
  }

  test("without a sidecar questions fail immediately") {
    Using.resource(new Executor("auto", Seq("/no/such/python"))) { executor =>
      val nobody = Introduction(Map("tcp" -> "127.0.0.1:1"), Map.empty)
      assert(executor.ask(nobody, 1) == Outcome.Lost("this executor has no sidecar"))
    }
  }

  test("a sidecar of another version of Penstock is rejected") {
    val program =
      "import sys, pathlib, penstock; penstock.__version__ = '0.0.9'; import penstock.sidecars.transfer.__main__ as m; " +
        "sys.exit(m.main(pathlib.Path(sys.argv[1])))"
    val clock = Executors.newSingleThreadScheduledExecutor()
    try {
      val e = intercept[io.penstock.process.SidecarFailure](
        TransferProcess.start(
          Seq(CommandLine.python.toString, "-c", program),
          settings("tcp"),
          Numbers,
          clock,
          new ChannelMemories
        )
      )
      assert(e.getMessage.contains("its package penstock has version 0.0.9, but this jar has version 0.1.0"))
    } finally clock.shutdownNow(): Unit
    assert(sidecars.isEmpty)
  }

  test("a long name of the temporary folder, as in YARN containers, is supported") {
    val long = Files.createDirectories(newDirectory("yarn").resolve("c" * 60).resolve("t" * 90))
    withTemporaryFolder(long) {
      Using.resource(new Executor("local"))(executor => assert(executor.introduced().addresses.contains("local")))
    }
  }

  test("a sidecar does not import modules from the working directory") {
    val shared = newDirectory("shared")
    Seq("hmac", "json", "penstock", "numba", "queue").foreach { name =>
      Files.writeString(shared.resolve(s"$name.py"), "import os; os._exit(3)\n")
    }
    val conf = Map("spark.penstock.python" -> CommandLine.python.toString)
    Seq(SidecarCommand.of(conf, Map.empty), SidecarCommand.ofExecutor(conf, Map.empty)).foreach { command =>
      val folder = newDirectory("sidecar")
      val builder =
        new ProcessBuilder((command :+ folder.toString): _*).directory(shared.toFile).redirectErrorStream(true)
      val process = builder.start()
      process.getOutputStream.close()
      val said = new String(process.getInputStream.readAllBytes(), UTF_8)
      // The process exits because it received no input.
      assert(process.waitFor() == 2, said)
    }
  }

  test("an invalid setting is reported by the sidecar") {
    val clock = Executors.newSingleThreadScheduledExecutor()
    try {
      val e = intercept[io.penstock.process.SidecarFailure](
        TransferProcess.start(command, settings("pigeon"), Numbers, clock, new ChannelMemories)
      )
      assert(e.getMessage.contains("transport is pigeon; allowed: auto, local"))
    } finally clock.shutdownNow(): Unit
  }
}
