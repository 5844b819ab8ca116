package io.penstock.sidecars.transfer

import io.penstock.process.SidecarCommand

/** The sidecar of this executor, if it has one: the driver, and an application in local mode, has none. */
object ExecutorTransfer extends PeerQuestions {
  @volatile private var sidecar: Option[TransferSidecar] = None
  @volatile private var introduction: Option[Introduction] = None

  /** Starts it, without waiting for it. */
  def start(command: Seq[String], settings: TransferSettings, source: AnswerSource): Unit =
    sidecar = Some(new TransferSidecar(command, settings, source, SidecarCommand.Remedy, told => introduction = told))

  /** Ends it. */
  def stop(): Unit = {
    sidecar.foreach(_.close())
    sidecar = None
    introduction = None
  }

  /** Where other executors reach it; empty where they cannot. */
  def addresses: Map[String, String] = introduction.fold(Map.empty[String, String])(_.addresses)

  override def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A] =
    sidecar.fold[Outcome[A]](TransferSidecar.none)(_.ask(peer, payload, limitMs)(read))
}
