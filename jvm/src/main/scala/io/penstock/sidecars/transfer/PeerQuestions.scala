package io.penstock.sidecars.transfer

/** Sends questions to other executors. */
trait PeerQuestions {

  /** Asks the executor of a peer; see [[TransferProcess.ask]]. */
  def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A]
}
