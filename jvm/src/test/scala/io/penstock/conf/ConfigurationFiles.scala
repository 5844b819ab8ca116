package io.penstock.conf

import java.nio.file.{Files, Path, Paths}

import io.penstock.errors.TroubleshootingPage
import io.penstock.metrics.{MetricsPage, ProgressPage}
import io.penstock.routing.ShardPolicy
import io.penstock.transport.{Transport, Transports}

/** Renders the registries of settings, transports, policies, metrics and errors to the generated files. Run by `make docs`. */
object ConfigurationFiles {

  /** Maps the path of each file, relative to the repository's root, to its content. */
  def rendered: Seq[(String, String)] =
    Seq(
      "docs/configuration.md" -> markdown,
      "docs/guide/troubleshooting.md" -> TroubleshootingPage.markdown,
      "docs/metrics.md" -> MetricsPage.markdown,
      "docs/progress.md" -> ProgressPage.markdown,
      "python/penstock/_configuration.json" -> json
    )

  /** @param args the repository's root directory */
  def main(args: Array[String]): Unit = {
    val root = Paths.get(args.headOption.getOrElse("."))
    rendered.foreach { case (name, content) =>
      val file: Path = root.resolve(name)
      Files.createDirectories(file.getParent)
      Files.writeString(file, content)
      println(s"wrote $name")
    }
  }

  private val intro =
    """# Configuration
      |
      |<!-- Generated from io.penstock.conf.Settings by `make docs`: do not edit. -->
      |
      |A value comes from the first of these places that sets it: the query's options
      |(`writeStream.option("penstock.theta", "1.1")`), the session (`spark.conf.set("spark.penstock.theta", "1.1")`), the
      |application (`--conf spark.penstock.theta=1.1`). Otherwise it is the default. *Set by* names the most specific place
      |that may set it. In all places a key may begin with `spark.penstock.` or with `penstock.`, but `--conf` and
      |`spark-defaults.conf` accept only keys that begin with `spark.`. A setting that can be changed *while a query runs* may
      |be set under these names or without any prefix: `penstock.set(query, "theta", 1.1)` in Python,
      |`io.penstock.Penstock.setOption` in Scala, `CALL penstock.set(...)` in SQL.
      |
      |An unknown key, an invalid value and a key in a place that may not set it fail the start of the application or of the
      |query. If they are among a query's options, the query has failed by the time its `start()` returns.
      |""".stripMargin

  private def markdown: String =
    intro + SettingGroup.all.map { group =>
      val settings = Settings.all.filter(_.group == group)
      s"\n## ${group.title}\n\n${group.about}\n${settings.map(section(_)).mkString}"
    }.mkString

  private def section[T](s: Setting[T]): String = {
    val unit = if (s.unit == "-") "" else s", in ${s.unit}"
    val running =
      if (s.effect.changeableAtRunTime) "can be changed while a query runs" else "cannot be changed while a query runs"
    s"""
       |### `${s.key}`
       |
       |${s.meaning}
       |
       |* Value: ${s.kind.name}$unit; allowed: ${s.kind.allowed}; default: `${s.kind.write(s.default)}`
       |* Set by: ${s.scope.name}; takes effect: ${s.effect.name}; $running
       |* Since: ${s.since}
       |""".stripMargin
  }

  private def json: String =
    s"""{
       |"generated": "from the registries of io.penstock by make docs: do not edit",
       |"settings": [
       |${Settings.all.map(jsonObject(_)).mkString(",\n")}
       |],
       |"transports": [
       |${Transports.All.map(jsonObject).mkString(",\n")}
       |],
       |"planned_policies": [${ShardPolicy.named.flatMap(_.plannedBy).map(quoted).mkString(", ")}]
       |}
       |""".stripMargin

  private def jsonObject(t: Transport): String =
    s"""  {"name": ${quoted(t.name)}, "number": ${t.number}, "encrypts": ${t.encrypts}, """ +
      s""""admits_strangers": ${t.admitsStrangers}, "only_by_name": ${t.onlyByName}}"""

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

  /** Registry texts contain no control characters, so JSON needs only quotes and backslashes escaped. */
  private def quoted(text: String): String = {
    require(text.forall(_ >= ' '), s"control character in a setting's text: $text")
    "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\""
  }
}
