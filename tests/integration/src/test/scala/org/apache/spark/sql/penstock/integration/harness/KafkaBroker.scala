package org.apache.spark.sql.penstock.integration.harness

import java.net.{InetAddress, ServerSocket}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.Base64
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.penstock.Patience
import org.scalatest.time.{Seconds, Span}

/**
 * A Kafka cluster of one broker in a separate process, with the class path that the build resolved for it.
 *
 * @param directory
 *   Directory of the broker's data and log
 */
final class KafkaBroker(directory: Path) extends AutoCloseable {
  import KafkaBroker._

  private val ports = freePorts(2)
  private val log = directory.resolve("broker.log")
  private val properties = writeProperties()
  private val server: Process = start()

  /** Address that clients connect to. */
  val address: String = s"127.0.0.1:${ports.head}"

  override def close(): Unit = {
    server.destroy()
    if (!server.waitFor(10, TimeUnit.SECONDS)) server.destroyForcibly().waitFor()
  }

  private def start(): Process = {
    val format = launch("kafka.tools.StorageTool", "format", "-t", ClusterId, "-c", properties.toString)
    if (format.waitFor() != 0) throw failed("could not format its directory")
    val process = launch("kafka.Kafka", properties.toString)
    def started = Files.readString(log).contains("Kafka Server started")
    if (!Patience.holdsWithin(Limit)(started || !process.isAlive)) {
      process.destroyForcibly()
      throw failed(s"was not ready within $Limit")
    }
    if (!started) throw failed("ended at once")
    process
  }

  private def launch(mainClass: String, arguments: String*): Process = {
    val java = JavaHome.program("java")
    val command = Seq(java, "-Xmx256m", "-XX:+UseSerialGC", "-cp", sys.props(ClassPathProperty), mainClass) ++ arguments
    new ProcessBuilder(command.asJava)
      .redirectErrorStream(true)
      .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile))
      .start()
  }

  private def writeProperties(): Path = Files.write(
    directory.resolve("server.properties"),
    Seq(
      "process.roles=broker,controller",
      "node.id=1",
      s"controller.quorum.voters=1@127.0.0.1:${ports(1)}",
      s"listeners=PLAINTEXT://127.0.0.1:${ports.head},CONTROLLER://127.0.0.1:${ports(1)}",
      "controller.listener.names=CONTROLLER",
      s"log.dirs=${directory.resolve("data")}",
      "num.partitions=3",
      "offsets.topic.replication.factor=1",
      "offsets.topic.num.partitions=1",
      "transaction.state.log.replication.factor=1",
      "transaction.state.log.min.isr=1"
    ).asJava
  )

  private def failed(problem: String) =
    new IllegalStateException(s"the Kafka broker $problem; its log:\n${Files.readString(log)}")
}

object KafkaBroker {

  /** System property with the broker's class path, set by the build. */
  val ClassPathProperty = "penstock.test.kafka.classpath"
  private val Limit = Span(60, Seconds)

  /** 16 bytes in URL-safe Base64. Not random, because an id that starts with a dash would be read as an option. */
  private val ClusterId = Base64.getUrlEncoder.withoutPadding().encodeToString("penstock-matrix!".getBytes(UTF_8))

  private def freePorts(count: Int): Seq[Int] = {
    val sockets = Seq.fill(count)(new ServerSocket(0, 1, InetAddress.getLoopbackAddress))
    try sockets.map(_.getLocalPort)
    finally sockets.foreach(_.close())
  }

  /** Starts a broker and runs `body` with it. */
  def using[T](directory: Path)(body: KafkaBroker => T): T = Using.resource(new KafkaBroker(directory))(body)
}
