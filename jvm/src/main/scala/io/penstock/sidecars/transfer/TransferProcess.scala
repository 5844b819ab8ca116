package io.penstock.sidecars.transfer

import java.io.IOException
import java.net.UnixDomainSocketAddress
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.nio.channels.SocketChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{LinkedBlockingQueue, ScheduledExecutorService, ThreadLocalRandom, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.penstock.conf.SparkVersions
import io.penstock.process.{DaemonThreads, PythonProcess, SidecarFailure}
import io.penstock.transport.Transports
import org.slf4j.LoggerFactory

/**
 * Settings of a transfer sidecar.
 *
 * @param secret
 *   secret of the application
 * @param host
 *   address of this host for its peers
 * @param transport
 *   name of the requested transport, or `auto`
 * @param encrypted
 *   whether all data that leave the process must be encrypted
 * @param authenticated
 *   whether peers must prove that they know the secret
 * @param channels
 *   number of questions of this executor that are answered concurrently, and of questions to it
 */
final case class TransferSettings(
    secret: Array[Byte],
    host: String,
    transport: String,
    encrypted: Boolean,
    authenticated: Boolean,
    channels: Int
)

/**
 * What a sidecar offers to its peers.
 *
 * @param addresses
 *   address for peers, by transport
 * @param missing
 *   reason for each transport that is not available
 */
final case class Introduction(addresses: Map[String, String], missing: Map[String, String]) {

  /** Text with the available transports and the reasons why others are not. */
  def inWords: String = {
    val available = addresses.keys.filter(_ != Introduction.Host).toSeq.sorted.mkString(", ")
    val others = missing.toSeq.sorted.map { case (transport, reason) => s"$transport is not available ($reason)" }
    (s"shards travel by $available" +: others).mkString("; ")
  }
}

object Introduction {

  /** Key among the addresses that is not a transport. Sidecars with the same value can reach each other's memory. */
  val Host = "host"
}

/** Result of a question. */
sealed trait Outcome[+A]

object Outcome {

  /** The answer arrived, and this value was read from it. */
  final case class Here[A](value: A) extends Outcome[A]

  /** The other executor does not have what was asked for. */
  final case class Refused(why: String) extends Outcome[Nothing]

  /** The question or its answer did not arrive. */
  final case class Lost(why: String) extends Outcome[Nothing]
}

/** Answers the questions of other executors. Called by several threads. */
trait AnswerSource {

  /** The answer, which is written while it is sent, or the reason why there is none. */
  def give(question: Array[Byte]): Either[String, Message]
}

/** A process of the transfer sidecar, and the channels to it. */
final class TransferProcess private (python: PythonProcess, memories: ChannelMemories) extends AutoCloseable {
  import TransferProcess._

  private val log = LoggerFactory.getLogger(getClass)
  private val asking = new LinkedBlockingQueue[ExecutorChannel]()
  private var channels = Seq.empty[ExecutorChannel]
  @volatile private var offered = Introduction(Map.empty, Map.empty)

  def introduction: Introduction = offered

  /** Waits for the end of the process. */
  def awaitEnd(): Unit = python.process.waitFor(): Unit

  /**
   * Asks another executor. Waits for a free channel, then for the answer.
   *
   * @param peer
   *   addresses of the other executor's sidecar
   * @param read
   *   reads the answer while it arrives; its second argument is the transport. Exceptions are passed on to the caller
   */
  def ask[A](
      peer: Map[String, String],
      payload: Array[Byte],
      limitMs: Int
  )(read: (MessageIn, String) => A): Outcome[A] =
    question(Ask, peer, payload, limitMs)(read)

  /** Sends bytes to the sidecar and back. */
  def echo(payload: Array[Byte], limitMs: Int): Outcome[Array[Byte]] =
    question(Echo, Map.empty, payload, limitMs)((in, _) => in.takeAll())

  private def question[A](kind: Byte, peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A] = {
    require(
      payload.length <= MaxPayloadBytes,
      s"a question of ${payload.length} bytes is too long; the limit is $MaxPayloadBytes"
    )
    // Throws InterruptedException if the task has been interrupted.
    val channel = asking.poll(limitMs.toLong, TimeUnit.MILLISECONDS)
    if (channel == null) Outcome.Lost("all channels to the sidecar are busy")
    else {
      var usable = false
      try {
        val answer = python.within(limitMs + GraceMs, "answer") {
          val token = if (kind == Ask) ThreadLocalRandom.current().nextLong(1L, Long.MaxValue) else 0L
          if (token != 0L) channel.receiveBuffer.expect(token)
          val header = head(kind, peer, limitMs, token)
          channel.send(header.length.toLong + payload.length) { out =>
            out.put(header)
            out.put(payload)
          }
          try channel.receive(outcome(_, channel, limitMs, read))
          catch { case _: GivenUp => Outcome.Lost("the peer broke off") }
          finally if (token != 0L) channel.receiveBuffer.expect(0L)
        }
        usable = true
        answer
      } catch {
        case e: SidecarFailure => Outcome.Lost(s"the sidecar failed: ${e.getMessage}")
        case NonFatal(e) =>
          usable = true
          throw e
      } finally {
        // This must happen before another thread can take the channel.
        channel.restoreInterrupt()
        if (usable) asking.add(channel)
        else {
          // The channel stopped in the middle of a message, so the process cannot be used any more.
          python.process.destroyForcibly()
          memories.keep(channel.shared)
        }
      }
    }
  }

  private def open(settings: TransferSettings, source: AnswerSource): Unit = {
    val token = PythonProcess.newToken()
    python.within(StartMs, "start") {
      python.tell(json.writeValueAsString(start(token, settings)))
      offered = introduced(python.hear("ready "))
      val name = UnixDomainSocketAddress.of(python.folder.resolve("executor.sock"))
      def channel(role: Char, memoryBytes: Int): ExecutorChannel = {
        val connection = SocketChannel.open(name)
        try {
          val first = ByteBuffer.wrap(s"$token$role".getBytes(UTF_8))
          while (first.hasRemaining) connection.write(first)
          val opened = ExecutorChannel.take(connection, memoryBytes, memories.take(memoryBytes))
          channels :+= opened
          opened
        } catch {
          case e: IOException =>
            connection.close()
            throw e
        }
      }
      (1 to settings.channels).foreach(_ => asking.put(channel('A', ExecutorChannel.AskingBytes)))
      (1 to settings.channels).map(_ => channel('G', ExecutorChannel.MemoryBytes)).zipWithIndex.foreach { case (l, i) =>
        DaemonThreads.named(s"penstock-sends-$i").newThread(() => give(l, source)).start()
      }
      python.hear("open"): Unit
    }
  }

  /** Answers questions on a channel until the channel ends. */
  private def give(channel: ExecutorChannel, source: AnswerSource): Unit =
    try while (true) {
        val (address, question) = channel.receive(in => (Envelope.read(in), in.takeAll()), MaxSentBytes)
        val answer =
          try source.give(question)
          catch { case NonFatal(e) => Left(e.toString) }
        try answer match {
            case Left(why) => send(channel, RefusedCode, Message.of(why.getBytes(UTF_8)))
            case Right(message) =>
              address.filter(_ => message.bytes >= MinReceiveBufferBytes).flatMap(a =>
                ReceiveBuffers.at(a).map(a -> _)
              ) match {
                case Some((at, receiveBuffer)) => sendDirect(channel, message, at, receiveBuffer)
                case None => send(channel, HereCode, message)
              }
          }
        catch {
          case e: IOException => throw e
          // The other side has been told by a GivenUp record.
          case NonFatal(e) => log.warn("Penstock: an answer could not be written", e)
        }
      }
    catch {
      // The channel or this process ends, or the channel is broken and with it the sidecar.
      case _: IOException | _: GivenUp => python.process.destroyForcibly(): Unit
    } finally memories.keep(channel.shared)

  private def send(channel: ExecutorChannel, code: Byte, message: Message): Unit =
    channel.send(1 + message.bytes) { out =>
      out.put(Array(code))
      message.writeTo(out)
    }

  /** Announces the answer, writes it to the receive buffer, and reports that it is complete. */
  private def sendDirect(
      channel: ExecutorChannel,
      message: Message,
      address: ReceiveBufferAddress,
      receiveBuffer: ReceiveBuffer
  ): Unit = {
    send(channel, DirectCode, Message.of(announcement(message.bytes)))
    try {
      val out = new SlicedOut(message.bytes, receiveBuffer.writer(address.token, address.process, address.limitMs))
      message.writeTo(out)
      out.finish()
    } catch {
      // The reader does not wait any more, or its sidecar has ended.
      case _: GivenUp => receiveBuffer.fail(address.token)
      case NonFatal(e) =>
        receiveBuffer.fail(address.token)
        log.warn("Penstock: an answer could not be written", e)
    } finally channel.send(1L)(_.put(Array(HereCode)))
  }

  override def close(): Unit = {
    channels.foreach(_.close())
    python.close()
    Iterator.continually(asking.poll()).takeWhile(_ != null).foreach(channel => memories.keep(channel.shared))
  }
}

object TransferProcess {
  private val json = new ObjectMapper
  private val StartMs = 120000L

  /** Added to the time limit that the sidecar gets, because the sidecar itself reports peers that are late. */
  private val GraceMs = 10000L
  private val Ask: Byte = 1
  private val Echo: Byte = 2
  private val HereCode: Byte = 0
  private val RefusedCode: Byte = 1
  private val LostCode: Byte = 2
  private val DirectCode: Byte = 3
  private val OutcomeBits = 0x0f
  private val HeadBytes = 16
  private val AnnouncementBytes = 16

  /** Smaller answers are sent through the sidecars. */
  private val MinReceiveBufferBytes = 64L << 10

  /** A question together with the peer's addresses may have 1 MiB. */
  private val MaxPayloadBytes = 512 << 10

  /** Largest question of another executor, with its envelope. Sidecars reject longer ones. */
  private val MaxSentBytes = 2L << 20

  /**
   * Starts a sidecar and opens its channels.
   *
   * @param command
   *   the program and its arguments; the folder is appended as the last argument
   * @param memories
   *   memories of earlier sidecars' channels; the memories of this sidecar are added when it has ended
   * @throws io.penstock.process.SidecarFailure
   *   if the sidecar cannot be started
   */
  def start(
      command: Seq[String],
      settings: TransferSettings,
      source: AnswerSource,
      clock: ScheduledExecutorService,
      memories: ChannelMemories
  ): TransferProcess = {
    val sidecar = new TransferProcess(PythonProcess.start(command, clock), memories)
    try {
      sidecar.open(settings, source)
      sidecar
    } catch {
      // Also an interruption, when the application ends during the start.
      case e: Throwable =>
        sidecar.close()
        throw e
    }
  }

  private def start(token: String, settings: TransferSettings): JsonNode = json.createObjectNode()
    .put("token", token)
    .put("secret", settings.secret.map("%02x".format(_)).mkString)
    .put("host", settings.host)
    .put("transport", settings.transport)
    .put("encrypted", settings.encrypted)
    .put("authenticated", settings.authenticated)
    .put("channels", settings.channels)

  private def introduced(line: String): Introduction = {
    val node = json.readTree(line)
    val version = node.path("penstock").asText
    if (version != SparkVersions.penstock) {
      throw new IOException(
        s"its package penstock has version $version, but this jar has version ${SparkVersions.penstock}"
      )
    }
    def texts(field: String): Map[String, String] =
      node.path(field).properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap
    Introduction(texts("addresses"), texts("missing"))
  }

  private def head(kind: Byte, peer: Map[String, String], limitMs: Int, token: Long): Array[Byte] = {
    val addresses = if (peer.isEmpty) Array.emptyByteArray else json.writeValueAsBytes(peer.asJava)
    val out = ByteBuffer.allocate(HeadBytes + addresses.length).order(LITTLE_ENDIAN)
    out.put(kind).put(0: Byte).putShort(addresses.length.toShort).putInt(limitMs).putLong(token).put(addresses).array
  }

  private def announcement(bytes: Long): Array[Byte] = ByteBuffer.allocate(AnnouncementBytes).order(LITTLE_ENDIAN)
    .putLong(bytes).putLong(ProcessHandle.current().pid()).array

  private def outcome[A](
      answer: MessageIn,
      channel: ExecutorChannel,
      limitMs: Int,
      read: (MessageIn, String) => A
  ): Outcome[A] = {
    def why = new String(answer.takeAll(), UTF_8)
    if (answer.remaining == 0) Outcome.Lost("the answer is empty")
    else {
      val first = answer.take(1).head & 0xff
      def by = Transports.name(first >>> 4)
      (first & OutcomeBits).toByte match {
        case HereCode => Outcome.Here(read(answer, by))
        case DirectCode if answer.remaining == AnnouncementBytes =>
          val announced = ByteBuffer.wrap(answer.takeAll()).order(LITTLE_ENDIAN)
          val (bytes, writer) = (announced.getLong(), announced.getLong())
          if (bytes < 0 || bytes > ExecutorChannel.MaxBytes)
            Outcome.Lost(s"the answer has an invalid size of $bytes bytes")
          else Outcome.Here(read(new SlicedIn(bytes.toInt, channel.receiveBuffer.reader(writer, limitMs)), by))
        case RefusedCode => Outcome.Refused(why)
        case LostCode => Outcome.Lost(why)
        case other => Outcome.Lost(s"the answer has the unknown outcome $other")
      }
    }
  }
}
