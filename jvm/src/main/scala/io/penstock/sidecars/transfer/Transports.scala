package io.penstock.sidecars.transfer

/** Transports that carry messages between sidecars (docs/PROTOCOL.md, section 12). */
object Transports {

  /** Names of all transports, in the order of their numbers in the protocol, which start at 1. */
  val All: Seq[String] = Seq("local", "verbs", "mpi", "tcp")

  /** Name of the transport with this number; empty if there is none. */
  private[transfer] def name(number: Int): String = All.lift(number - 1).getOrElse("")
}
