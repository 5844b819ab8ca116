package io.penstock.benchmarks

import java.net.UnixDomainSocketAddress
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.nio.channels.SocketChannel
import java.util.concurrent.Executors

import org.apache.spark.sql.SparkSession

import io.penstock.process.PythonProcess
import io.penstock.sidecars.transfer.ExecutorChannel
import io.penstock.state.engine.Arena

/**
 * Measures an executor channel between the JVM and Python: slices in both directions, and the time in which a waiting
 * process answers a message.
 */
object Ring {
  private val Bytes = 64 << 20
  private val (take, send) = (0L, 1L)

  def run(spark: SparkSession, args: Arguments, report: Report): Unit = {
    val clock = Executors.newSingleThreadScheduledExecutor()
    val command = Seq(spark.sparkContext.getConf.get("spark.penstock.python"), args.required("program"))
    val python = PythonProcess.start(command, clock)
    try {
      python.hear("ready"): Unit
      val channel =
        ExecutorChannel.take(
          SocketChannel.open(UnixDomainSocketAddress.of(python.folder.resolve("ring.sock"))),
          ExecutorChannel.MemoryBytes
        )
      val data = new Array[Byte](ExecutorChannel.SliceBytes)
      def ask(request: Long, size: Long): Unit =
        channel.send(16)(_.put(ByteBuffer.allocate(16).order(LITTLE_ENDIAN).putLong(request).putLong(size).array))
      def answer(): Unit = channel.receive(_.takeAll()): Unit
      def measure(call: String, bytes: Int)(work: => Unit): Unit = {
        val rounds = args.int("warm-up", 20) + args.int("rounds", 60)
        val took = (0 until rounds).map { _ =>
          val start = System.nanoTime()
          work
          System.nanoTime() - start
        }
        report.line(
          Map("bench" -> "ring", "call" -> call),
          took.drop(args.int("warm-up", 20)).map(ns => Map("ns" -> ns, "movedBytes" -> bytes))
        )
      }
      measure("64 MiB to Python", Bytes) {
        ask(take, Bytes.toLong)
        answer()
        channel.send(Bytes.toLong)(out => (0 until Bytes / data.length).foreach(_ => out.put(data)))
        answer()
      }
      measure("64 MiB from Python", Bytes) {
        ask(send, Bytes.toLong)
        channel.receive(in => while (in.remaining > 0) in.read(data, 0, data.length))
      }
      measure("64 MiB from Python, into new pages", Bytes) {
        ask(send, Bytes.toLong)
        // Shards are received in the same way.
        channel.receive(in => while (in.remaining > 0) in.take(Arena.PageBytes): Unit)
      }
      measure("a byte and back", 1) {
        ask(send, 1L)
        answer()
      }
      channel.close()
    } finally {
      python.close()
      clock.shutdownNow(): Unit
    }
  }
}
