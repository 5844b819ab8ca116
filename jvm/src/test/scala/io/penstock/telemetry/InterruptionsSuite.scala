package io.penstock.telemetry

import java.nio.ByteBuffer
import java.util.concurrent.{CountDownLatch, FutureTask}

import org.scalatest.funsuite.AnyFunSuite

class InterruptionsSuite extends AnyFunSuite {
  import InterruptionsSuite._

  test("the second of three numbers is read, and a missing number is zero") {
    def second(text: String) = Interruptions.secondNumber(ByteBuffer.wrap(text.getBytes))
    assert(second("12 3456789 1\n") == 3456789L)
    assert(second("12 9223372036854775807 1") == Long.MaxValue)
    assert(second("") == 0L && second("12") == 0L)
  }

  test("a thread that shares its core is interrupted, a sleeping one is not") {
    assume(new java.io.File("/proc/thread-self/schedstat").canRead, "needs /proc/thread-self/schedstat")
    val (sleeps, stop, wake) = (new CountDownLatch(1), new CountDownLatch(1), new CountDownLatch(1))
    val asleep = new FutureTask[Long](() =>
      interruptedWhile {
        sleeps.countDown()
        wake.await()
      }
    )
    new Thread(asleep).start()
    sleeps.await()
    val others = Seq.fill(4 * Runtime.getRuntime.availableProcessors)(new Thread(() => while (stop.getCount > 0) {}))
    others.foreach(_.start())
    val shared =
      try
        interruptedWhile {
          val until = System.nanoTime() + 600000000L
          while (System.nanoTime() < until) Thread.onSpinWait()
        }
      finally stop.countDown()
    others.foreach(_.join())
    // The sleeping thread has slept all the time, and wakes up when the processors are free.
    wake.countDown()
    val slept = asleep.get()
    assert(slept < 100000000L && shared > 200000000L, (slept, shared))
  }

  test("collections that stop the JVM are counted") {
    val found = interruptedWhile((1 to 5).foreach(_ => System.gc()))
    assert(found >= 1000000L)
  }

  test("time in which a thread ran is not an interruption, whatever the source reports") {
    assert(Interruptions.of(elapsedNs = 500L, ranNs = 200L, keptNs = 100L) == 100L)
    // 300 ns in the run queue, during 250 of which the collector had stopped the JVM.
    assert(Interruptions.of(elapsedNs = 500L, ranNs = 200L, keptNs = 550L) == 300L)
    assert(Interruptions.of(elapsedNs = 10L, ranNs = 20L, keptNs = 5L) == 0L)
  }

  test("what happens while interruptions are read belongs to no period, and to the total") {
    for (isBefore <- Seq(true, false)) {
      val thread = new InterruptedThread(isBefore)
      val interruptions = new Interruptions(thread)
      thread.runs(500L)
      thread.isInterrupted = true
      // The period ends before interruptions are read.
      assert(interruptions.sinceLast(thread.nowNs()) == 0L)
      val beganNs = interruptions.atNs
      thread.runs(700L)
      assert(thread.nowNs() - beganNs == 700L)
      // The interruption may be known only now, but this period had none.
      assert(interruptions.sinceLast(thread.nowNs()) == 0L)
      assert(interruptions.totalNs == InterruptedThread.InterruptionNs)
    }
  }

  private def interruptedWhile(body: => Unit): Long = {
    val interruptions = Interruptions.ofThisThread()
    try {
      interruptions.sinceLast(System.nanoTime())
      body
      interruptions.sinceLast(System.nanoTime())
    } finally interruptions.close()
  }
}

private object InterruptionsSuite {

  /** A thread that always runs, except that it is interrupted once while its time in the run queue is read. */
  final class InterruptedThread(isBefore: Boolean) extends Interruptions.Source {
    private var (now, ran, kept) = (0L, 0L, 0L)
    var isInterrupted = false

    def runs(ns: Long): Unit = {
      now += ns
      ran += ns
    }

    override def nowNs(): Long = now
    override def ranNs(): Long = ran

    override def keptNs(): Long = {
      if (isBefore) interrupt()
      val read = kept
      if (!isBefore) interrupt()
      read
    }

    private def interrupt(): Unit = if (isInterrupted) {
      now += InterruptedThread.InterruptionNs
      kept += InterruptedThread.InterruptionNs
      isInterrupted = false
    }

    override def close(): Unit = ()
  }

  object InterruptedThread {
    val InterruptionNs = 1000000L
  }
}
