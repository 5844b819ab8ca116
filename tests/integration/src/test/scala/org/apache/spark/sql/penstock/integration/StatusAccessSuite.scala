package org.apache.spark.sql.penstock.integration

import java.net.URI
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest, HttpResponse}

import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.penstock.integration.harness.{Applications, OneApplicationAtATime}
import org.apache.spark.sql.{Encoders, classic}

import io.penstock.SameOnEverySpark
import jakarta.servlet.http.{HttpServletRequest, HttpServletRequestWrapper, HttpServletResponse}
import jakarta.servlet.{Filter, FilterChain, ServletRequest, ServletResponse}
import org.scalatest.funsuite.AnyFunSuite

/** Who may see the status page and its JSON is for Spark's UI to say; and what is shown is text, whatever it is. */
@SameOnEverySpark
class StatusAccessSuite extends AnyFunSuite with OneApplicationAtATime {
  private val client = HttpClient.newHttpClient()
  private val places = Seq("/penstock/", "/penstock/json/")

  private def withUi(conf: (String, String)*): classic.SparkSession =
    application(Applications.Plugin ++ Map("spark.ui.enabled" -> "true", "spark.ui.port" -> "0") ++ conf)

  private def ask(session: classic.SparkSession, place: String, method: String = "GET", user: String = ""): HttpResponse[String] = {
    val request = HttpRequest.newBuilder(URI.create(session.sparkContext.uiWebUrl.get + place))
      .method(method, HttpRequest.BodyPublishers.noBody())
    if (user.nonEmpty) request.header(NamedUser.Header, user)
    client.send(request.build(), BodyHandlers.ofString())
  }

  test("a filter of Spark's UI that refuses refuses the status as well") {
    val session = withUi("spark.ui.filters" -> classOf[RefusingFilter].getName)
    places.foreach(place => assert(ask(session, place).statusCode() == 418, place))
  }

  test("who may not view Spark's UI may not view the status") {
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

  test("only GET is answered with a status") {
    val session = withUi()
    for (place <- places; method <- Seq("POST", "PUT", "DELETE", "PATCH"))
      assert(ask(session, place, method).statusCode() / 100 == 4, s"$method $place")
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
      assert(json.headers().firstValue("Content-Type").get.startsWith("application/json") || json.headers().firstValue("Content-Type").get.startsWith("text/json"))
      assert(json.body().contains("alert('key')") && !json.body().contains("\u001b"))
    } finally query.stop()
  }
}

/** Answers everything itself. */
final class RefusingFilter extends Filter {
  override def doFilter(request: ServletRequest, response: ServletResponse, chain: FilterChain): Unit =
    response.asInstanceOf[HttpServletResponse].sendError(418)
}

/** Believes who a request says it is from. */
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
