package io.penstock.telemetry

import java.nio.ByteBuffer
import java.util.concurrent.CountDownLatch

import org.scalatest.funsuite.AnyFunSuite

class InterruptionsSuite extends AnyFunSuite {

  test("the second of three numbers is read, and none is nothing") {
    def second(text: String) = Interruptions.secondNumber(ByteBuffer.wrap(text.getBytes))
    assert(second("12 3456789 1\n") == 3456789L)
    assert(second("12 9223372036854775807 1") == Long.MaxValue)
    assert(second("") == 0L && second("12") == 0L)
  }

  test("a thread that shares its core was interrupted, one that sleeps was not") {
    assume(new java.io.File("/proc/thread-self/schedstat").canRead, "the kernel does not tell")
    val slept = interruptedWhile(Thread.sleep(300))
    val stop = new CountDownLatch(1)
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
    assert(slept < 100000000L && shared > 200000000L, (slept, shared))
  }

  test("collections that stop the JVM are told") {
    val found = interruptedWhile((1 to 5).foreach(_ => System.gc()))
    assert(found >= 1000000L)
  }

  test("what a thread has run was no interruption, whoever tells of it") {
    assert(Interruptions.of(elapsedNs = 500L, ranNs = 200L, keptNs = 100L) == 100L)
    // 300 in the queue, of which the collector had stopped the JVM for 250.
    assert(Interruptions.of(elapsedNs = 500L, ranNs = 200L, keptNs = 550L) == 300L)
    assert(Interruptions.of(elapsedNs = 10L, ranNs = 20L, keptNs = 5L) == 0L)
  }

  private def interruptedWhile(what: => Unit): Long = {
    val interruptions = Interruptions.ofThisThread()
    try {
      interruptions.sinceLast(System.nanoTime())
      what
      interruptions.sinceLast(System.nanoTime())
    } finally interruptions.close()
  }
}
