package io.penstock.conf

/** Section of the configuration page to which a setting belongs, in the order of the page. */
sealed abstract class SettingGroup(val title: String, val about: String)

object SettingGroup {
  case object General
      extends SettingGroup("General", "Whether Penstock acts, and into how many shards it divides state.")

  case object Balance
      extends SettingGroup("Balance of tasks", "How shards and heavy keys are divided among the tasks of a batch.")

  case object Executors extends SettingGroup(
        "Executors and latency",
        "How state moves between executors, and how many executors Penstock asks Spark for."
      )

  case object State
      extends SettingGroup("State and checkpoint", "Memory for state, and what is written to the checkpoint.")

  case object Sidecars extends SettingGroup("Sidecars", "Python processes beside the driver and the executors.")

  val all: Seq[SettingGroup] = Seq(General, Balance, Executors, State, Sidecars)
}
