package io.penstock.sidecars.transfer

import io.penstock.context.{Component, ComponentKey, ExecutorContext}
import io.penstock.process.SidecarCommand

/** The transfer sidecar of this executor. Applications in local mode have none. */
final class ExecutorTransfer extends PeerQuestions with Component {
  @volatile private var sidecar: Option[TransferSidecar] = None
  @volatile private var introduction: Option[Introduction] = None

  /** Starts the sidecar without waiting for it. */
  def start(command: Seq[String], settings: TransferSettings, source: AnswerSource): Unit =
    sidecar =
      Some(new TransferSidecar(command, settings, source, SidecarCommand.Remedy, offered => introduction = offered))

  /** Addresses under which other executors reach the sidecar; empty if there is none. */
  def addresses: Map[String, String] = introduction.fold(Map.empty[String, String])(_.addresses)

  override def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A] =
    sidecar.fold[Outcome[A]](TransferSidecar.none)(_.ask(peer, payload, limitMs)(read))

  override def held: Map[String, Long] =
    Map("addresses" -> addresses.size.toLong, "threads" -> sidecar.fold(0L)(_.liveThreads.toLong))

  /** Ends the sidecar. */
  override def close(): Unit = {
    sidecar.foreach(_.close())
    introduction = None
  }
}

object ExecutorTransfer extends ComponentKey[ExecutorTransfer](ExecutorContext)
