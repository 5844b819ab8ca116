package io.penstock.errors

/** Renders the registry of errors to `docs/guide/troubleshooting.md`. */
object TroubleshootingPage {
  private val groups = Seq(
    "settings" -> "Settings and running queries",
    "application" -> "Setting up an application",
    "checkpoint" -> "Checkpoints",
    "state" -> "State",
    "pinning" -> "Pinned keys",
    "transfer" -> "Sidecars and transports",
    "status" -> "Status page",
    "tools" -> "Command line",
    "internal" -> "Internal errors"
  )

  private val intro =
    """# Troubleshooting
      |
      |<!-- Generated from error-conditions.json by `make docs`: do not edit. -->
      |
      |Every error of Penstock has an error class, `PENSTOCK_...`, at the start of its message: search this page for it. The
      |message has the details: which file, setting or query. Errors that a user can correct also have a SQLSTATE, as
      |Spark's errors do. [operating.md](operating.md) says what happens to a query when a process dies.
      |""".stripMargin

  def markdown: String = {
    val unknown = ErrorConditions.all.filterNot { case (_, condition) => groups.exists(_._1 == condition.group) }
    require(
      unknown.isEmpty,
      s"unknown groups: ${unknown.map { case (name, c) => s"$name: ${c.group}" }.mkString(", ")}"
    )
    intro + groups.map { case (group, title) =>
      val entries = ErrorConditions.all.filter(_._2.group == group).map { case (name, condition) =>
        entry(name, condition)
      }
      s"\n## $title\n${entries.mkString}"
    }.mkString
  }

  private def entry(name: String, condition: ErrorCondition): String = {
    val state = condition.sqlState.fold("")(state => s" (SQLSTATE $state)")
    s"\n### $name\n\n**Cause**$state: ${condition.cause}\n\n**What to do:** ${condition.remedy}\n"
  }
}
