package io.penstock.sidecars.transfer

import java.lang.Thread.State.TIMED_WAITING
import java.nio.ByteBuffer
import java.util.concurrent.Executors

import scala.concurrent.duration._
import scala.concurrent.{Await, ExecutionContext, Future, Promise}
import scala.util.{Random, Try}

import io.penstock.{Patience, Seed}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Runs both sides of a receive buffer on threads of one process. */
class ReceiveBufferSuite extends AnyFunSuite with BeforeAndAfterAll with Patience {
  private val threads = Executors.newCachedThreadPool()
  implicit private val context: ExecutionContext = ExecutionContext.fromExecutor(threads)
  private val own = ProcessHandle.current().pid()
  private val limitMs = 20000
  private val patience = 30.seconds

  private def newReceiveBuffer() = new ReceiveBuffer(ByteBuffer.allocateDirect(ReceiveBuffer.Bytes))

  override def afterAll(): Unit = threads.shutdownNow(): Unit

  private def write(receiveBuffer: ReceiveBuffer, token: Long, message: Array[Byte], parts: Seq[Int]): Unit = {
    val out = new SlicedOut(message.length.toLong, receiveBuffer.writer(token, own, limitMs))
    var at = 0
    (parts :+ message.length).foreach { end =>
      out.put(message, at, end - at)
      at = end
    }
    out.finish()
  }

  private def read(receiveBuffer: ReceiveBuffer, size: Int, parts: Seq[Int]): Array[Byte] = {
    val in = new SlicedIn(size, receiveBuffer.reader(own, limitMs))
    (parts :+ size).foldLeft((Array.emptyByteArray, 0)) { case ((all, at), end) => (all ++ in.take(end - at), end) }._1
  }

  /** Runs `body` on a thread of its own, and returns its result to come once the thread waits inside the buffer. */
  private def waiting[A](body: => A): Future[A] = {
    val result = Promise[A]()
    val thread = new Thread(() => result.complete(Try(body)): Unit)
    thread.start()
    eventually(assert(thread.getState == TIMED_WAITING))
    result.future
  }

  test("messages arrive complete, however they are split for writing and reading") {
    info(s"seed ${Seed.value}")
    val random = new Random(Seed.value)
    val receiveBuffer = newReceiveBuffer()
    val ring = ExecutorChannel.RingBytes
    val sizes = Seq(
      0,
      1,
      ExecutorChannel.SliceBytes - 1,
      ExecutorChannel.SliceBytes,
      ExecutorChannel.SliceBytes + 1,
      ring,
      ring + 1
    ) ++
      Seq.fill(20)(random.nextInt(3 * ring))
    sizes.zipWithIndex.foreach { case (size, i) =>
      val message = random.nextBytes(size)
      def cuts = Seq.fill(random.nextInt(20))(random.nextInt(size + 1)).sorted
      val (out, in) = (cuts, cuts)
      receiveBuffer.expect(i + 1L)
      val found = Future(read(receiveBuffer, size, in))
      write(receiveBuffer, i + 1L, message, out)
      assert(Await.result(found, patience).toSeq == message.toSeq, s"$size bytes")
    }
  }

  test("a writer waits while nothing is read, and continues when it is") {
    val receiveBuffer = newReceiveBuffer()
    val message = new Array[Byte](ExecutorChannel.RingBytes + 1)
    receiveBuffer.expect(7L)
    val written = waiting(write(receiveBuffer, 7L, message, Nil))
    assert(!written.isCompleted)
    assert(read(receiveBuffer, message.length, Nil).length == message.length)
    Await.result(written, patience)
  }

  test("a writer that is not expected, or not any more, cannot write") {
    val receiveBuffer = newReceiveBuffer()
    receiveBuffer.expect(7L)
    intercept[GivenUp](write(receiveBuffer, 8L, new Array[Byte](10), Nil))
    val message = new Array[Byte](ExecutorChannel.RingBytes + 1)
    val written = waiting(intercept[GivenUp](write(receiveBuffer, 7L, message, Nil)))
    receiveBuffer.expect(0L)
    Await.result(written, patience)
    receiveBuffer.expect(9L)
    receiveBuffer.fail(7L)
    // The buffer belongs to another answer by now.
    val next = Array[Byte](1, 2, 3)
    write(receiveBuffer, 9L, next, Nil)
    assert(read(receiveBuffer, 3, Nil).toSeq == next.toSeq)
  }

  test("the reader fails if the rest of a message does not arrive") {
    val receiveBuffer = newReceiveBuffer()
    receiveBuffer.expect(7L)
    val found = Future(intercept[GivenUp](read(receiveBuffer, ExecutorChannel.RingBytes, Nil)))
    val out = receiveBuffer.writer(7L, own, limitMs)
    out.next(ExecutorChannel.SliceBytes)
    out.filled(ExecutorChannel.RingBytes.toLong, ExecutorChannel.SliceBytes)
    receiveBuffer.fail(7L)
    Await.result(found, patience)
  }

  test("waiting ends when the other process has ended, and at the time limit") {
    val receiveBuffer = newReceiveBuffer()
    receiveBuffer.expect(7L)
    val ended = new ProcessBuilder("true").start()
    ended.waitFor()
    intercept[GivenUp](new SlicedIn(10, receiveBuffer.reader(ended.pid(), limitMs)).take(10))
    val start = System.nanoTime()
    intercept[GivenUp](new SlicedIn(10, receiveBuffer.reader(own, 200)).take(10))
    assert((System.nanoTime() - start).nanos >= 200.millis)
    val full = new SlicedOut(ExecutorChannel.RingBytes + 1L, receiveBuffer.writer(7L, ended.pid(), limitMs))
    intercept[GivenUp](full.put(new Array[Byte](ExecutorChannel.RingBytes + 1)))
  }
}
