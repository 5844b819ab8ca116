package io.penstock.courier

/** What carries messages between sidecars (docs/PROTOCOL.md, section 12). */
object Transports {

  /** By number, from 1. */
  val All: Seq[String] = Seq("local", "verbs", "mpi", "tcp")

  /** Empty for a number that none has. */
  private[courier] def name(number: Int): String = All.lift(number - 1).getOrElse("")
}
