package org.apache.spark.sql.penstock.integration

import java.io.{DataInputStream, EOFException}
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.net.{Socket, SocketException, URI}
import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.util.Locale

import scala.util.{Random, Using}

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.penstock.integration.harness.{Applications, OneApplicationAtATime}
import org.apache.spark.sql.{Encoders, classic}

import io.penstock.SameOnEverySpark
import jakarta.servlet.http.{HttpServletRequest, HttpServletRequestWrapper, HttpServletResponse}
import jakarta.servlet.{Filter, FilterChain, ServletRequest, ServletResponse}
import org.scalatest.funsuite.AnyFunSuite

/** Spark's UI decides who may see the status page and its JSON, and any content is shown as plain text. */
@SameOnEverySpark
class StatusAccessSuite extends AnyFunSuite with OneApplicationAtATime {
  private val client = HttpClient.newHttpClient()
  private val places = Seq("/penstock/", "/penstock/json/")

  private def withUi(conf: (String, String)*): classic.SparkSession =
    application(Applications.Plugin ++ Map("spark.ui.enabled" -> "true", "spark.ui.port" -> "0") ++ conf)

  private def ask(
      session: classic.SparkSession,
      place: String,
      method: String = "GET",
      user: String = ""
  ): HttpResponse[String] = {
    val request = HttpRequest.newBuilder(URI.create(session.sparkContext.uiWebUrl.get + place))
      .method(method, HttpRequest.BodyPublishers.noBody())
    if (user.nonEmpty) request.header(NamedUser.Header, user)
    client.send(request.build(), BodyHandlers.ofString())
  }

  test("a rejecting filter of Spark's UI also rejects the status") {
    val session = withUi("spark.ui.filters" -> classOf[RefusingFilter].getName)
    places.foreach(place => assert(ask(session, place).statusCode() == 418, place))
  }

  test("users who may not view Spark's UI may not view the status") {
    val session = withUi(
      "spark.ui.filters" -> classOf[NamedUser].getName,
      "spark.acls.enable" -> "true",
      "spark.ui.view.acls" -> "operator"
    )
    places.foreach { place =>
      assert(ask(session, place, user = "operator").statusCode() == 200, place)
      assert(ask(session, place, user = "stranger").statusCode() == 403, place)
    }
  }

  test("only GET returns a status") {
    val session = withUi()
    // Before version 6.1, a servlet answers PATCH with "not implemented" instead of "not allowed".
    for (place <- places; method <- Seq("POST", "PUT", "DELETE", "PATCH"))
      assert(ask(session, place, method).statusCode() == (if (method == "PATCH") 501 else 405), s"$method $place")
  }

  test("any parameters of the JSON give an answer or a client error, never a server error") {
    val session = withUi()
    val url = URI.create(session.sparkContext.uiWebUrl.get)
    val seed = java.lang.Long.getLong("penstock.test.seed", 36L)
    val inputs = Integer.getInteger("penstock.test.inputs", 2000).intValue
    val random = new Random(seed)
    Using.resource(new Requests(url.getHost, url.getPort)) { requests =>
      (0 until inputs).foreach { i =>
        val query = Hostile.query(random)
        val answer = requests.ask(s"/penstock/json/?$query")
        assert(Set(200, 400, 414, 431)(answer.status), s"input $i of seed $seed: $query")
        assert(!answer.body.contains("<script>") && answer.body.length < 16384, s"input $i of seed $seed: $query")
      }
    }
  }

  test("keys and names are shown as text") {
    val session = withUi("spark.penstock.shards" -> "8")
    val key = "<script>alert('key')</script>\u001b[2J"
    val source = MemoryStream[String](Encoders.STRING, session)
    val query = source.toDF().groupBy("value").count().writeStream.format("noop").outputMode("update")
      .queryName("<img src=x onerror=alert('name')>")
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .start()
    try {
      (1 to 3).foreach { _ =>
        source.addData(Seq.fill(1000)(key))
        query.processAllAvailable()
      }
      val page = ask(session, "/penstock/").body()
      assert(page.contains("&lt;script&gt;alert(") && page.contains("&lt;img src=x"))
      assert(!page.contains("<script>alert(") && !page.contains("<img src=x"))
      val json = ask(session, "/penstock/json/")
      assert(json.headers().firstValue("Content-Type").get.startsWith("application/json") || json.headers().firstValue(
        "Content-Type"
      ).get.startsWith("text/json"))
      assert(json.body().contains("alert('key')") && !json.body().contains("\u001b"))
    } finally query.stop()
  }
}

/** An HTTP response. */
final private case class Answer(status: Int, body: String)

/** Sends raw request lines that an HTTP client library would reject. */
final private class Requests(host: String, port: Int) extends AutoCloseable {
  private var open: Option[Socket] = None

  /**
   * Sends a request and reads the complete response.
   *
   * @throws java.io.IOException
   *   If the server closes the connection before the end of the response, or sends nothing for 10 s
   */
  def ask(target: String): Answer = {
    val reused = open.isDefined
    try askOnce(target)
    catch {
      // A server may close a connection after any response without notice. A new connection must have a response.
      case _: EOFException | _: SocketException if reused =>
        close()
        askOnce(target)
    }
  }

  private def askOnce(target: String): Answer = {
    val socket = open.getOrElse(new Socket(host, port))
    open = Some(socket)
    socket.setSoTimeout(10000)
    socket.getOutputStream.write(s"GET $target HTTP/1.1\r\nHost: $host\r\n\r\n".getBytes(ISO_8859_1))
    val in = new DataInputStream(socket.getInputStream)
    val lines = until(in, "\r\n\r\n").split("\r\n").toSeq
    val headers = lines.tail.map(_.split(": ", 2)).collect { case Array(k, v) => k.toLowerCase(Locale.ROOT) -> v }.toMap
    val body = headers.get("content-length") match {
      case Some(bytes) => text(in, bytes.toInt)
      case None => chunks(in)
    }
    if (headers.get("connection").contains("close")) close()
    Answer(lines.head.split(" ")(1).toInt, body)
  }

  private def until(in: DataInputStream, end: String): String = {
    val said = new StringBuilder
    while (!said.endsWith(end)) said.append(in.readUnsignedByte().toChar)
    said.toString
  }

  private def text(in: DataInputStream, size: Int): String = {
    val bytes = new Array[Byte](size)
    in.readFully(bytes)
    new String(bytes, UTF_8)
  }

  private def chunks(in: DataInputStream): String = {
    val body = new StringBuilder
    var size = -1
    while (size != 0) {
      size = Integer.parseInt(until(in, "\r\n").trim, 16)
      body.append(text(in, size))
      until(in, "\r\n"): Unit
    }
    body.toString
  }

  override def close(): Unit = {
    open.foreach(_.close())
    open = None
  }
}

/** Queries that no browser sends. */
private object Hostile {
  private val Names = Seq("batches", "query", "batches[]", "", "Batches", "<script>", "%00", "%zz", "%c0%af")
  private val Values =
    Seq("0", "1", "-1", "100000000000", "1e3", "NaN", "", "%", "%f", "%00", "%ff%fe", "<script>", "'\"--", "a" * 3000)

  /** Printable and other bytes, except for those that end the line. */
  private def anything(random: Random): String =
    Seq.fill(random.nextInt(40))((33 + random.nextInt(223)).toChar).filter(_ != '#').mkString

  def query(random: Random): String = Seq.fill(random.nextInt(4)) {
    def one(from: Seq[String]) = if (random.nextInt(3) == 0) anything(random) else from(random.nextInt(from.size))
    s"${one(Names)}=${one(Values)}"
  }.mkString("&")
}

/** Answers every request itself. */
final class RefusingFilter extends Filter {
  override def doFilter(request: ServletRequest, response: ServletResponse, chain: FilterChain): Unit =
    response.asInstanceOf[HttpServletResponse].sendError(418)
}

/** Trusts the user name in a request header. */
final class NamedUser extends Filter {
  override def doFilter(request: ServletRequest, response: ServletResponse, chain: FilterChain): Unit = {
    val named = new HttpServletRequestWrapper(request.asInstanceOf[HttpServletRequest]) {
      override def getRemoteUser: String = getHeader(NamedUser.Header)
    }
    chain.doFilter(named, response)
  }
}

object NamedUser {
  val Header = "X-Test-User"
}
