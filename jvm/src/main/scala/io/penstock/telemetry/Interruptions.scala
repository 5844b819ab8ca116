package io.penstock.telemetry

import java.io.{IOException, RandomAccessFile}
import java.lang.management.ManagementFactory
import java.nio.ByteBuffer
import java.nio.channels.FileChannel

import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * For how long a thread was kept from running, whatever it does itself: ready to run in the queue of the kernel (on Linux,
 * `schedstat`), and while the collector had stopped the JVM. What the thread waits for by itself, such as a service, is not
 * among it. For the thread that made it.
 */
final class Interruptions private (schedstat: Option[FileChannel]) extends AutoCloseable {
  private val bytes = ByteBuffer.allocateDirect(Interruptions.MaxBytes)
  private var atNs = System.nanoTime()
  private var ranNs = Interruptions.processorNs()
  private var keptNs = queuedAndCollectedNs()

  /**
   * What has come since it was asked for last, in ns; takes about 2 microseconds.
   *
   * @param nowNs
   *   of `System.nanoTime`
   */
  def sinceLast(nowNs: Long): Long = {
    val (elapsed, ran, kept) = (nowNs - atNs, Interruptions.processorNs() - ranNs, queuedAndCollectedNs() - keptNs)
    atNs = nowNs
    ranNs += ran
    keptNs += kept
    Interruptions.of(elapsed, ran, kept)
  }

  private def queuedAndCollectedNs(): Long = schedstat.fold(0L)(queuedNs) + Interruptions.collectionNs()

  private def queuedNs(of: FileChannel): Long = {
    bytes.clear()
    try of.read(bytes, 0L)
    catch { case _: IOException => () }
    bytes.flip()
    Interruptions.secondNumber(bytes)
  }

  override def close(): Unit = schedstat.foreach(_.close())
}

object Interruptions {

  /** Three numbers of 64 bits, and what is between them. */
  private val MaxBytes = 64

  /** Collectors' beans that count phases in which threads run on. */
  private val Concurrent = Seq("Concurrent", "Cycles")

  private val collectors = ManagementFactory.getGarbageCollectorMXBeans.asScala.toSeq
    .filterNot(c => Concurrent.exists(c.getName.contains(_)))

  private val threads = ManagementFactory.getThreadMXBean

  /**
   * How much of some time a thread was kept from running.
   *
   * @param ranNs
   *   for which it has used a core
   * @param keptNs
   *   that it was in the queue, and that the JVM was stopped. Both tell of the same time where the JVM is stopped while a
   *   thread, in native code, is in the queue: what it has run was no interruption in any case
   */
  private[telemetry] def of(elapsedNs: Long, ranNs: Long, keptNs: Long): Long =
    math.max(0L, math.min(keptNs, elapsedNs - math.max(0L, ranNs)))

  /** Of the calling thread; 0 where it is not known. */
  private def processorNs(): Long = if (threads.isCurrentThreadCpuTimeSupported) threads.getCurrentThreadCpuTime else 0L

  /** Of the calling thread. */
  def ofThisThread(): Interruptions =
    new Interruptions(Try(new RandomAccessFile("/proc/thread-self/schedstat", "r").getChannel).toOption)

  /** A collector that cannot tell says -1. */
  private def collectionNs(): Long = {
    var ms = 0L
    collectors.foreach(c => ms += math.max(0L, c.getCollectionTime))
    ms * 1000000L
  }

  /** The second of the numbers that spaces divide; 0 where there is none. */
  private[telemetry] def secondNumber(text: ByteBuffer): Long = {
    while (text.hasRemaining && text.get() != ' ') {}
    var number = 0L
    var digit = 0
    while (text.hasRemaining && digit >= 0) {
      digit = text.get() - '0'
      if (digit > 9) digit = -1
      if (digit >= 0) number = number * 10 + digit
    }
    number
  }
}
