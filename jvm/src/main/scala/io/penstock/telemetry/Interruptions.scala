package io.penstock.telemetry

import java.io.{IOException, RandomAccessFile}
import java.lang.management.ManagementFactory
import java.nio.ByteBuffer
import java.nio.channels.FileChannel

import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * Measures for how long a thread was kept from running: while it was ready to run in the run queue of the kernel (from
 * `schedstat`, on Linux only), and while the garbage collector had stopped the JVM. Time in which the thread waits on
 * its own account, for example for a service, is not included. Only for use by the thread that created the instance.
 */
final class Interruptions private[telemetry] (source: Interruptions.Source) extends AutoCloseable {
  private var ranNs = source.ranNs()
  private var keptNs = source.keptNs()
  private var readNs = source.nowNs()
  private val (startNs, startRanNs, startKeptNs) = (readNs, ranNs, keptNs)

  /**
   * Interruptions since the previous call, in ns. A call takes about 2 microseconds.
   *
   * @param nowNs
   *   End of the period; it begins at [[atNs]]
   */
  def sinceLast(nowNs: Long): Long = {
    val (elapsed, ran, kept) = (nowNs - readNs, source.ranNs() - ranNs, source.keptNs() - keptNs)
    ranNs += ran
    keptNs += kept
    readNs = source.nowNs()
    Interruptions.of(elapsed, ran, kept)
  }

  /**
   * Time of the newest reading. It is taken after the reading, in which a thread is often switched, so that such a wait is
   * part of no period.
   */
  def atNs: Long = readNs

  /** Interruptions from the beginning to the newest reading, in ns, with those while interruptions were read. */
  def totalNs: Long = Interruptions.of(readNs - startNs, ranNs - startRanNs, keptNs - startKeptNs)

  override def close(): Unit = source.close()
}

object Interruptions {

  /** Clocks of a thread, in ns. */
  private[telemetry] trait Source extends AutoCloseable {
    def nowNs(): Long

    /** Processor time of the thread. */
    def ranNs(): Long

    /** Time in the run queue plus time for which the JVM was stopped. */
    def keptNs(): Long
  }

  /** The clocks of the thread that reads them. */
  final private class OfThread(schedstat: Option[FileChannel]) extends Source {
    private val bytes = ByteBuffer.allocateDirect(MaxBytes)

    override def nowNs(): Long = System.nanoTime()
    override def ranNs(): Long = processorNs()
    override def keptNs(): Long = schedstat.fold(0L)(queuedNs) + collectionNs()

    private def queuedNs(file: FileChannel): Long = {
      bytes.clear()
      try file.read(bytes, 0L)
      catch { case _: IOException => () }
      bytes.flip()
      secondNumber(bytes)
    }

    override def close(): Unit = schedstat.foreach(_.close())
  }

  /** Enough for three 64-bit numbers and the spaces between them. */
  private val MaxBytes = 64

  /** Parts of the names of collector beans whose phases do not stop threads. */
  private val Concurrent = Seq("Concurrent", "Cycles")

  private val collectors = ManagementFactory.getGarbageCollectorMXBeans.asScala.toSeq
    .filterNot(c => Concurrent.exists(c.getName.contains(_)))

  private val threads = ManagementFactory.getThreadMXBean

  /**
   * Time for which a thread was kept from running.
   *
   * @param elapsedNs
   *   Length of the period
   * @param ranNs
   *   Processor time of the thread in the period, which bounds the result: this time was no interruption in any case
   * @param keptNs
   *   Time in the run queue plus time for which the JVM was stopped. Time in which a thread in native code is in the
   *   queue while the JVM is stopped is counted twice
   */
  private[telemetry] def of(elapsedNs: Long, ranNs: Long, keptNs: Long): Long =
    math.max(0L, math.min(keptNs, elapsedNs - math.max(0L, ranNs)))

  /** Processor time of the calling thread; 0 if it is not available. */
  private def processorNs(): Long = if (threads.isCurrentThreadCpuTimeSupported) threads.getCurrentThreadCpuTime else 0L

  /** Interruptions of the calling thread. */
  def ofThisThread(): Interruptions =
    new Interruptions(new OfThread(Try(new RandomAccessFile("/proc/thread-self/schedstat", "r").getChannel).toOption))

  /** Total time of all collectors. A collector that does not measure its time returns -1. */
  private def collectionNs(): Long = {
    var ms = 0L
    collectors.foreach(c => ms += math.max(0L, c.getCollectionTime))
    ms * 1000000L
  }

  /** The second of the numbers in a text that are separated by spaces; 0 if there is none. */
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
