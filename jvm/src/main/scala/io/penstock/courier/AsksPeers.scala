package io.penstock.courier

/** Asks other executors. */
trait AsksPeers {

  /** Asks the executor of a peer; see [[CourierProcess.ask]]. */
  def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A]
}
