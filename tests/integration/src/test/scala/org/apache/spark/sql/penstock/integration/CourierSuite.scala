package org.apache.spark.sql.penstock.integration

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.concurrent.{Executors, LinkedBlockingQueue, TimeUnit}

import scala.concurrent.duration._
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.penstock.integration.harness.CommandLine

import io.penstock.courier._
import org.scalatest.funsuite.AnyFunSuite

/** The executor's side of real sidecars, which carry questions from one to the other. */
class CourierSuite extends AnyFunSuite {
  private val command = Seq(CommandLine.python.toString, "-m", "penstock.courier")
  private val limitMs = 20000
  private val secret = "of one application".getBytes(UTF_8)

  private def settings(transport: String) =
    CourierSettings(secret, "127.0.0.1", transport, encrypted = false, lanes = 2)

  /** Answers a number with so many bytes, in two parts. */
  private object Numbers extends Giver {
    override def give(question: Array[Byte]): Either[String, Seq[ByteBuffer]] =
      new String(question, UTF_8).toInt match {
        case n if n < 0 => Left("there is nothing of that size")
        case 13 => throw new IllegalStateException("a giver that fails")
        case n =>
          val all = pattern(n)
          Right(Seq(ByteBuffer.wrap(all, 0, n / 3), ByteBuffer.wrap(all, n / 3, n - n / 3)))
      }
  }

  private def pattern(n: Int): Array[Byte] = Array.tabulate(n)(i => (i * 31 + i / 251).toByte)

  private def question(n: Int): ByteBuffer = ByteBuffer.wrap(n.toString.getBytes(UTF_8))

  /** A courier and what it last introduced. */
  private class Executor(transport: String, program: Seq[String] = command) extends AutoCloseable {
    private val introductions = new LinkedBlockingQueue[Option[Introduction]]()
    val courier = new Courier(program, settings(transport), Numbers, "Do this", introductions.add(_): Unit, _ => 100L)

    def introduced(): Introduction = Iterator.continually(next()).flatten.next()

    def next(): Option[Introduction] =
      Option(introductions.poll(60, TimeUnit.SECONDS)).getOrElse(fail("nothing was introduced"))

    override def close(): Unit = courier.close()
  }

  private def sidecars: Seq[ProcessHandle] = ProcessHandle.current().children().iterator().asScala
    .filter(_.info().commandLine().orElse("").contains("penstock.courier")).toSeq

  private def folders: Set[String] =
    Using.resource(
      Files.list(Path.of(System.getProperty("java.io.tmpdir")))
    )(_.iterator.asScala.map(_.getFileName.toString)
      .filter(_.startsWith("penstock-")).toSet)

  private def answer(outcome: Outcome): Seq[Byte] = outcome match {
    case here: Outcome.Here => here.toArray.toSeq
    case other => fail(other.toString)
  }

  Seq("local", "tcp").foreach { transport =>
    test(s"$transport: what is asked of another executor comes whole") {
      Using.resources(new Executor(transport), new Executor(transport)) { (one, other) =>
        one.introduced()
        val peer = other.introduced()
        assert(peer.addresses.contains(transport) && peer.missing.contains("mpi"))
        Seq(0, 1, Lane.SliceBytes - 1, Lane.SliceBytes, 20000000).foreach { n =>
          assert(answer(one.courier.ask(peer.addresses, question(n), limitMs)) == pattern(n).toSeq)
        }
        assert(one.courier.ask(
          peer.addresses,
          question(-1),
          limitMs
        ) == Outcome.Refused("there is nothing of that size"))
        assert(one.courier.ask(peer.addresses, question(13), limitMs).toString.contains("a giver that fails"))
        val threads = Executors.newFixedThreadPool(6)
        implicit val context: ExecutionContext = ExecutionContext.fromExecutor(threads)
        val sizes = (1 to 30).map(_ * 100003)
        val all = Future.traverse(sizes)(n => Future(answer(one.courier.ask(peer.addresses, question(n), limitMs))))
        assert(Await.result(all, 60.seconds) == sizes.map(pattern(_).toSeq))
        threads.shutdown()
      }
      assert(sidecars.isEmpty)
    }
  }

  test("a peer that is gone is told, and there again when it is") {
    Using.resources(new Executor("auto"), new Executor("auto")) { (one, other) =>
      one.introduced()
      val before = other.introduced()
      assert(answer(one.courier.ask(before.addresses, question(5), limitMs)) == pattern(5).toSeq)
      // Which of the two it is, is not known: both are started again.
      sidecars.foreach(_.destroyForcibly())
      assert(Seq(one, other).forall(_.next().isEmpty), "the end is introduced as well")
      one.introduced()
      val again = other.introduced()
      assert(one.courier.ask(before.addresses, question(5), limitMs).isInstanceOf[Outcome.Lost])
      assert(answer(one.courier.ask(again.addresses, question(5), limitMs)) == pattern(5).toSeq)
    }
  }

  test("nothing is left, whatever ends first") {
    val (left, shared) = (folders, new java.io.File("/dev/shm").list().toSet)
    val executor = new Executor("auto")
    executor.introduced()
    assert(answer(executor.courier.echo(question(7), limitMs)) == "7".getBytes(UTF_8).toSeq)
    // While it runs there is nothing that could be left.
    assert(folders == left && new java.io.File("/dev/shm").list().toSet == shared)
    sidecars.foreach(_.destroyForcibly())
    assert(executor.next().isEmpty)
    executor.close()
    assert(sidecars.isEmpty && folders == left && new java.io.File("/dev/shm").list().toSet == shared)
  }

  test("without a sidecar nothing is answered, and nothing waits") {
    Using.resource(new Executor("auto", Seq("/no/such/python"))) { executor =>
      assert(executor.courier.ask(Map("tcp" -> "127.0.0.1:1"), question(1), limitMs) == Outcome.Lost(
        "this executor has no sidecar"
      ))
    }
  }

  test("a wrong setting is an error of the sidecar") {
    val clock = Executors.newSingleThreadScheduledExecutor()
    try {
      val e = intercept[io.penstock.sidecar.SidecarFailure](
        CourierProcess.start(command, settings("pigeon"), Numbers, clock)
      )
      assert(e.getMessage.contains("transport is pigeon; allowed: auto, local"))
    } finally clock.shutdownNow(): Unit
  }
}
