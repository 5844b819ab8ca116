package io.penstock.sidecars.transfer

/** What carries messages between sidecars (docs/PROTOCOL.md, section 12). */
object Transports {

  /** By number, from 1. */
  val All: Seq[String] = Seq("local", "verbs", "mpi", "tcp")

  /** Empty for a number that none has. */
  private[transfer] def name(number: Int): String = All.lift(number - 1).getOrElse("")
}
