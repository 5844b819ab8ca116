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
import org.slf4j.LoggerFactory

/**
 * How an executor's sidecar is to work.
 *
 * @param secret
 *   of the application
 * @param host
 *   address of this host that peers use
 * @param transport
 *   that is wanted, or `auto`
 * @param encrypted
 *   whether what leaves the process must be
 * @param authenticated
 *   whether nobody may reach the process who does not know the secret
 * @param channels
 *   questions of this executor, and of others to it, that are answered side by side
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
 * What a sidecar said of itself.
 *
 * @param addresses
 *   for its peers, by transport
 * @param missing
 *   transports that it does not offer, and why
 */
final case class Introduction(addresses: Map[String, String], missing: Map[String, String]) {

  /** Which transports there are, and why not the others. */
  def inWords: String = {
    val there = addresses.keys.filter(_ != Introduction.Host).toSeq.sorted.mkString(", ")
    val why = missing.toSeq.sorted.map { case (transport, reason) => s"not $transport ($reason)" }
    (s"shards travel by $there" +: why).mkString("; ")
  }
}

object Introduction {

  /** Among the addresses: no transport, but what those have in common that reach each other's memory. */
  val Host = "host"
}

/** What became of a question. */
sealed trait Outcome[+A]

object Outcome {

  /** What was made of the answer. */
  final case class Here[A](value: A) extends Outcome[A]

  /** The other executor does not have what was asked for. */
  final case class Refused(why: String) extends Outcome[Nothing]

  /** It did not get through. */
  final case class Lost(why: String) extends Outcome[Nothing]
}

/** Answers the questions of other executors; called by several threads. */
trait AnswerSource {

  /** The answer, which is written while it is sent, or why there is none. */
  def give(question: Array[Byte]): Either[String, Message]
}

/** One process of an executor's sidecar, and the channels to it. */
final class TransferProcess private (python: PythonProcess, memories: ChannelMemories) extends AutoCloseable {
  import TransferProcess._

  private val log = LoggerFactory.getLogger(getClass)
  private val asking = new LinkedBlockingQueue[ExecutorChannel]()
  private var channels = Seq.empty[ExecutorChannel]
  @volatile private var told = Introduction(Map.empty, Map.empty)

  def introduction: Introduction = told

  /** Waits for the end of the process. */
  def awaitEnd(): Unit = python.process.waitFor(): Unit

  /**
   * Asks the executor of a peer; waits for a free channel, and then for the answer.
   *
   * @param read
   *   reads the answer while it comes, by the transport that is named; what it throws, this throws
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

  private def question[A](what: Byte, peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A] = {
    require(payload.length <= MaxPayloadBytes, s"a question of ${payload.length} bytes")
    // Throws where the task was interrupted before.
    val channel = asking.poll(limitMs.toLong, TimeUnit.MILLISECONDS)
    if (channel == null) Outcome.Lost("all channels to the sidecar are busy")
    else {
      var usable = false
      try {
        val answer = python.within(limitMs + GraceMs, "answer") {
          val token = if (what == Ask) ThreadLocalRandom.current().nextLong(1L, Long.MaxValue) else 0L
          if (token != 0L) channel.receiveBuffer.expect(token)
          val before = head(what, peer, limitMs, token)
          channel.send(before.length.toLong + payload.length) { out =>
            out.put(before)
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
        // Before it is somebody else's.
        channel.restoreInterrupt()
        if (usable) asking.add(channel)
        else {
          // Whatever it was, the channel is in the middle of it.
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
      told = introduced(python.hear("ready "))
      val name = UnixDomainSocketAddress.of(python.folder.resolve("executor.sock"))
      def channel(role: Char, memoryBytes: Int): ExecutorChannel = {
        val connection = SocketChannel.open(name)
        try {
          val first = ByteBuffer.wrap(s"$token$role".getBytes(UTF_8))
          while (first.hasRemaining) connection.write(first)
          val made = ExecutorChannel.take(connection, memoryBytes, memories.take(memoryBytes))
          channels :+= made
          made
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

  /** Answers on a channel until it ends. */
  private def give(channel: ExecutorChannel, source: AnswerSource): Unit =
    try while (true) {
        val (place, question) = channel.receive(in => (Envelope.read(in), in.takeAll()), MaxSentBytes)
        val answer =
          try source.give(question)
          catch { case NonFatal(e) => Left(e.toString) }
        try answer match {
            case Left(why) => send(channel, RefusedCode, Message.of(why.getBytes(UTF_8)))
            case Right(message) =>
              place.filter(_ => message.bytes >= MinReceiveBufferBytes).flatMap(p =>
                ReceiveBuffers.at(p).map(p -> _)
              ) match {
                case Some((at, receiveBuffer)) => land(channel, message, at, receiveBuffer)
                case None => send(channel, HereCode, message)
              }
          }
        catch {
          case e: IOException => throw e
          // The other side was told.
          case NonFatal(e) => log.warn("Penstock: an answer could not be written", e)
        }
      }
    catch {
      // Its end, or that of this process; or it is broken, and so is the sidecar.
      case _: IOException | _: GivenUp => python.process.destroyForcibly(): Unit
    } finally memories.keep(channel.shared)

  private def send(channel: ExecutorChannel, code: Byte, message: Message): Unit =
    channel.send(1 + message.bytes) { out =>
      out.put(Array(code))
      message.writeTo(out)
    }

  /** Says that the answer lands, writes it there, and says that it is done. */
  private def land(
      channel: ExecutorChannel,
      message: Message,
      place: ReceiveBufferAddress,
      receiveBuffer: ReceiveBuffer
  ): Unit = {
    send(channel, LandsCode, Message.of(landed(message.bytes)))
    try {
      val out = new SlicedOut(message.bytes, receiveBuffer.writer(place.token, place.process, place.limitMs))
      message.writeTo(out)
      out.finish()
    } catch {
      // Who waited for it does so no more, or its sidecar has ended.
      case _: GivenUp => receiveBuffer.fail(place.token)
      case NonFatal(e) =>
        receiveBuffer.fail(place.token)
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

  /** Beyond the limit that the sidecar is told: it says so itself where a peer is late. */
  private val GraceMs = 10000L
  private val Ask: Byte = 1
  private val Echo: Byte = 2
  private val HereCode: Byte = 0
  private val RefusedCode: Byte = 1
  private val LostCode: Byte = 2
  private val LandsCode: Byte = 3
  private val OutcomeBits = 0x0f
  private val HeadBytes = 16
  private val LandedBytes = 16

  /** Smaller answers go the way that the question came. */
  private val MinReceiveBufferBytes = 64L << 10

  /** A question has a mebibyte with the peer's addresses. */
  private val MaxPayloadBytes = 512 << 10

  /** Of another executor's question with its envelope: a sidecar takes no longer ones from others. */
  private val MaxSentBytes = 2L << 20

  /**
   * Starts a sidecar, and opens its channels.
   *
   * @param command
   *   the program and its arguments before the folder
   * @param memories
   *   that sidecars before it had; gets those of this one when it has ended
   * @throws io.penstock.process.SidecarFailure
   *   where it cannot be started
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
      case NonFatal(e) =>
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

  private def introduced(said: String): Introduction = {
    val told = json.readTree(said)
    val version = told.path("penstock").asText
    if (version != SparkVersions.penstock) {
      throw new IOException(s"its package penstock is of version $version, and this jar of ${SparkVersions.penstock}")
    }
    def texts(field: String): Map[String, String] =
      told.path(field).properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap
    Introduction(texts("addresses"), texts("missing"))
  }

  private def head(what: Byte, peer: Map[String, String], limitMs: Int, token: Long): Array[Byte] = {
    val addresses = if (peer.isEmpty) Array.emptyByteArray else json.writeValueAsBytes(peer.asJava)
    val out = ByteBuffer.allocate(HeadBytes + addresses.length).order(LITTLE_ENDIAN)
    out.put(what).put(0: Byte).putShort(addresses.length.toShort).putInt(limitMs).putLong(token).put(addresses).array
  }

  private def landed(bytes: Long): Array[Byte] = ByteBuffer.allocate(LandedBytes).order(LITTLE_ENDIAN)
    .putLong(bytes).putLong(ProcessHandle.current().pid()).array

  private def outcome[A](
      answer: MessageIn,
      channel: ExecutorChannel,
      limitMs: Int,
      read: (MessageIn, String) => A
  ): Outcome[A] = {
    def why = new String(answer.takeAll(), UTF_8)
    if (answer.remaining == 0) Outcome.Lost("an answer that is empty")
    else {
      val first = answer.take(1).head & 0xff
      def by = Transports.name(first >>> 4)
      (first & OutcomeBits).toByte match {
        case HereCode => Outcome.Here(read(answer, by))
        case LandsCode if answer.remaining == LandedBytes =>
          val told = ByteBuffer.wrap(answer.takeAll()).order(LITTLE_ENDIAN)
          val (bytes, writer) = (told.getLong(), told.getLong())
          if (bytes < 0 || bytes > ExecutorChannel.MaxBytes) Outcome.Lost(s"an answer of $bytes bytes")
          else Outcome.Here(read(new SlicedIn(bytes.toInt, channel.receiveBuffer.reader(writer, limitMs)), by))
        case RefusedCode => Outcome.Refused(why)
        case LostCode => Outcome.Lost(why)
        case other => Outcome.Lost(s"an answer that begins with $other")
      }
    }
  }
}
