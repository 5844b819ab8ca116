package io.penstock.courier

import java.io.IOException
import java.net.UnixDomainSocketAddress
import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.nio.channels.SocketChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{LinkedBlockingQueue, ScheduledExecutorService, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.penstock.sidecar.{PythonProcess, Sidecar, SidecarFailure}

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
 * @param lanes
 *   questions of this executor, and of others to it, that are answered side by side
 */
final case class CourierSettings(
    secret: Array[Byte],
    host: String,
    transport: String,
    encrypted: Boolean,
    lanes: Int
)

/**
 * What a sidecar said of itself.
 *
 * @param addresses
 *   for its peers, by transport
 * @param missing
 *   transports that it does not offer, and why
 */
final case class Introduction(addresses: Map[String, String], missing: Map[String, String])

/** What became of a question. */
sealed trait Outcome

object Outcome {
  final case class Here(bytes: Array[Byte], offset: Int) extends Outcome {
    def toArray: Array[Byte] = java.util.Arrays.copyOfRange(bytes, offset, bytes.length)
  }

  /** The other executor does not have what was asked for. */
  final case class Refused(why: String) extends Outcome

  /** It did not get through. */
  final case class Lost(why: String) extends Outcome
}

/** Answers the questions of other executors; called by several threads. */
trait Giver {

  /** The answer, in parts that follow one another, or why there is none. */
  def give(question: Array[Byte]): Either[String, Seq[ByteBuffer]]
}

/** One process of an executor's sidecar, and the lanes to it. */
final class CourierProcess private (python: PythonProcess) extends AutoCloseable {
  import CourierProcess._

  private val asking = new LinkedBlockingQueue[Lane]()
  private var lanes = Seq.empty[Lane]
  @volatile private var told = Introduction(Map.empty, Map.empty)

  def introduction: Introduction = told

  /** Waits for the end of the process. */
  def awaitEnd(): Unit = python.process.waitFor(): Unit

  /** Asks the executor of a peer; waits for a free lane, and then for the answer. */
  def ask(peer: Map[String, String], payload: ByteBuffer, limitMs: Int): Outcome =
    question(Ask, peer, payload, limitMs)

  /** Sends bytes to the sidecar and back. */
  def echo(payload: ByteBuffer, limitMs: Int): Outcome = question(Echo, Map.empty, payload, limitMs)

  private def question(what: Byte, peer: Map[String, String], payload: ByteBuffer, limitMs: Int): Outcome = {
    require(payload.remaining <= MostPayloadBytes, s"a question of ${payload.remaining} bytes")
    val lane = asking.poll(limitMs.toLong, TimeUnit.MILLISECONDS)
    if (lane == null) Outcome.Lost("all lanes to the sidecar are busy")
    else
      try {
        val answer = python.within(limitMs + GraceMs, "answer") {
          lane.send(head(what, peer, limitMs), payload)
          try Some(lane.receive())
          catch { case _: GivenUp => None }
        }
        asking.put(lane)
        answer.fold[Outcome](Outcome.Lost("the peer broke off"))(outcome)
      } catch {
        case e: SidecarFailure =>
          // Whatever it was, the lane is in the middle of it.
          python.process.destroyForcibly()
          Outcome.Lost(s"the sidecar failed: ${e.getMessage}")
      }
  }

  private def open(settings: CourierSettings, giver: Giver): Unit = {
    val token = PythonProcess.newToken()
    python.within(StartMs, "start") {
      python.tell(json.writeValueAsString(start(token, settings)))
      told = introduced(python.hear("ready "))
      val name = UnixDomainSocketAddress.of(python.folder.resolve("executor.sock"))
      def lane(role: Char): Lane = {
        val connection = SocketChannel.open(name)
        val first = ByteBuffer.wrap(s"$token$role".getBytes(UTF_8))
        while (first.hasRemaining) connection.write(first)
        val made = Lane.take(connection)
        lanes :+= made
        made
      }
      (1 to settings.lanes).foreach(_ => asking.put(lane('A')))
      (1 to settings.lanes).map(_ => lane('G')).zipWithIndex.foreach { case (l, i) =>
        Sidecar.daemons(s"penstock-gives-$i").newThread(() => give(l, giver)).start()
      }
      python.hear("open"): Unit
    }
  }

  /** Answers on a lane until it ends. */
  private def give(lane: Lane, giver: Giver): Unit =
    try while (true) {
        val question = lane.receive()
        val answer =
          try giver.give(question)
          catch { case NonFatal(e) => Left(e.toString) }
        answer match {
          case Right(parts) => lane.send(first(HereCode) +: parts: _*)
          case Left(why) => lane.send(first(RefusedCode), ByteBuffer.wrap(why.getBytes(UTF_8)))
        }
      }
    catch {
      // Its end, or that of this process; or it is broken, and so is the sidecar.
      case _: IOException | _: GivenUp => python.process.destroyForcibly(): Unit
    }

  override def close(): Unit = {
    lanes.foreach(_.close())
    python.close()
  }
}

object CourierProcess {
  private val json = new ObjectMapper
  private val StartMs = 120000L

  /** Beyond the limit that the sidecar is told: it says so itself where a peer is late. */
  private val GraceMs = 10000L
  private val Ask: Byte = 1
  private val Echo: Byte = 2
  private val HereCode: Byte = 0
  private val RefusedCode: Byte = 1
  private val LostCode: Byte = 2
  private val HeadBytes = 8

  /** A question has a mebibyte with the peer's addresses. */
  private val MostPayloadBytes = 512 << 10

  /**
   * Starts a sidecar, and opens its lanes.
   *
   * @param command
   *   the program and its arguments before the folder
   * @throws io.penstock.sidecar.SidecarFailure
   *   where it cannot be started
   */
  def start(
      command: Seq[String],
      settings: CourierSettings,
      giver: Giver,
      clock: ScheduledExecutorService
  ): CourierProcess = {
    val courier = new CourierProcess(PythonProcess.start(command, clock))
    try {
      courier.open(settings, giver)
      courier
    } catch {
      case NonFatal(e) =>
        courier.close()
        throw e
    }
  }

  private def start(token: String, settings: CourierSettings): JsonNode = json.createObjectNode()
    .put("token", token)
    .put("secret", settings.secret.map("%02x".format(_)).mkString)
    .put("host", settings.host)
    .put("transport", settings.transport)
    .put("encrypted", settings.encrypted)
    .put("lanes", settings.lanes)

  private def introduced(said: String): Introduction = {
    val told = json.readTree(said)
    def texts(field: String): Map[String, String] =
      told.path(field).properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap
    Introduction(texts("addresses"), texts("missing"))
  }

  private def head(what: Byte, peer: Map[String, String], limitMs: Int): ByteBuffer = {
    val addresses = if (peer.isEmpty) Array.emptyByteArray else json.writeValueAsBytes(peer.asJava)
    val out = ByteBuffer.allocate(HeadBytes + addresses.length).order(LITTLE_ENDIAN)
    out.put(what).put(0: Byte).putShort(addresses.length.toShort).putInt(limitMs).put(addresses).flip()
  }

  private def first(code: Byte): ByteBuffer = ByteBuffer.wrap(Array(code))

  private def outcome(answer: Array[Byte]): Outcome = {
    def why = new String(answer, 1, answer.length - 1, UTF_8)
    answer.headOption match {
      case Some(HereCode) => Outcome.Here(answer, 1)
      case Some(RefusedCode) => Outcome.Refused(why)
      case Some(LostCode) => Outcome.Lost(why)
      case other => Outcome.Lost(s"an answer that begins with $other")
    }
  }
}
