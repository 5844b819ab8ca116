package io.penstock.conf

import java.nio.file.{Files, Path, Paths}

import io.penstock.metrics.{MetricsPage, ProgressPage}

/** Renders the registries of settings and metrics to the files that are generated from them. `make docs` writes them. */
object ConfigurationFiles {

  /** Path from the repository's root, with content. */
  def rendered: Seq[(String, String)] =
    Seq(
      "docs/configuration.md" -> markdown,
      "docs/metrics.md" -> MetricsPage.markdown,
      "docs/progress.md" -> ProgressPage.markdown,
      "python/penstock/_configuration.json" -> json
    )

  /** @param args the repository's root */
  def main(args: Array[String]): Unit = {
    val root = Paths.get(args.headOption.getOrElse("."))
    rendered.foreach { case (name, content) =>
      val file: Path = root.resolve(name)
      Files.createDirectories(file.getParent)
      Files.writeString(file, content)
      println(s"wrote $name")
    }
  }

  private def markdown: String = {
    val rows = Settings.all.map(markdownRow(_))
    s"""# Configuration
       |
       |<!-- Generated from io.penstock.conf.Settings by `make docs`: do not edit. -->
       |
       |A value comes from the query's options (`writeStream.option("penstock.theta", "1.1")`), else from the session
       |(`spark.conf.set("spark.penstock.theta", "1.1")`), else from the application (`--conf spark.penstock.theta=1.1`),
       |else it is the default. The column *set by* names the nearest of these places that may set it. In all of them a key
       |may begin with `spark.penstock.` or `penstock.` alone, but `--conf` and `spark-defaults.conf` take what begins with
       |`spark.` only. What is changeable at run time may be set for a query that runs, under these names or without any
       |prefix: `penstock.set(query, "theta", 1.1)`, `io.penstock.Penstock.setOption` in Scala, `CALL penstock.set(...)` in SQL.
       |
       |An unknown key, a value that is not allowed and a key in a place that may not set it fail the start of the application,
       |or of the query; where they are among a query's options, the query has failed when its `start()` returns.
       |
       || key | type | allowed | default | unit | set by | takes effect | changeable at run time | since | meaning |
       ||---|---|---|---|---|---|---|---|---|---|
       |""".stripMargin + rows.map(_ + "\n").mkString
  }

  private def markdownRow[T](s: Setting[T]): String = Seq(
    s"`${s.key}`",
    s.kind.name,
    s.kind.allowed,
    s"`${s.kind.write(s.default)}`",
    s.unit,
    s.scope.name,
    s.effect.name,
    if (s.effect.changeableAtRunTime) "yes" else "no",
    s.since,
    s.meaning
  ).map(_.replace("|", "\\|")).mkString("| ", " | ", " |")

  private def json: String =
    Settings.all.map(jsonObject(_)).mkString(
      "{\n\"generated\": \"from io.penstock.conf.Settings by make docs: do not edit\",\n\"settings\": [\n",
      ",\n",
      "\n]\n}\n"
    )

  private def jsonObject[T](s: Setting[T]): String = {
    val texts = Seq(
      "key" -> s.key,
      "option" -> s.option,
      "type" -> s.kind.name,
      "allowed" -> s.kind.allowed,
      "default" -> s.kind.write(s.default),
      "unit" -> s.unit,
      "scope" -> s.scope.name,
      "effect" -> s.effect.name,
      "since" -> s.since,
      "meaning" -> s.meaning
    ).map { case (k, v) => s"    ${quoted(k)}: ${quoted(v)}" }
    val changeable = s"""    "changeable": ${s.effect.changeableAtRunTime}"""
    (texts :+ changeable).mkString("  {\n", ",\n", "\n  }")
  }

  /** The registry's texts are plain: quotes and backslashes are all that JSON needs escaped. */
  private def quoted(text: String): String = {
    require(text.forall(_ >= ' '), s"control character in a setting's text: $text")
    "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\""
  }
}
