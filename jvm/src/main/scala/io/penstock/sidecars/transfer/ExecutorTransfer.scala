package io.penstock.sidecars.transfer

import io.penstock.process.SidecarCommand

/** The transfer sidecar of this executor. The driver and applications in local mode have none. */
object ExecutorTransfer extends PeerQuestions {
  @volatile private var sidecar: Option[TransferSidecar] = None
  @volatile private var introduction: Option[Introduction] = None

  /** Starts the sidecar without waiting for it. */
  def start(command: Seq[String], settings: TransferSettings, source: AnswerSource): Unit =
    sidecar =
      Some(new TransferSidecar(command, settings, source, SidecarCommand.Remedy, offered => introduction = offered))

  /** Ends the sidecar. */
  def stop(): Unit = {
    sidecar.foreach(_.close())
    sidecar = None
    introduction = None
  }

  /** Addresses under which other executors reach the sidecar; empty if there is none. */
  def addresses: Map[String, String] = introduction.fold(Map.empty[String, String])(_.addresses)

  override def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A] =
    sidecar.fold[Outcome[A]](TransferSidecar.none)(_.ask(peer, payload, limitMs)(read))
}
