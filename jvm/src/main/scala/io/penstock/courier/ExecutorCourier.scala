package io.penstock.courier

import io.penstock.sidecar.SidecarCommand

/** The sidecar of this executor, if it has one: the driver, and an application in local mode, has none. */
object ExecutorCourier extends AsksPeers {
  @volatile private var courier: Option[Courier] = None
  @volatile private var introduction: Option[Introduction] = None

  /** Starts it, without waiting for it. */
  def start(command: Seq[String], settings: CourierSettings, giver: Giver): Unit =
    courier = Some(new Courier(command, settings, giver, SidecarCommand.Remedy, told => introduction = told))

  /** Ends it. */
  def stop(): Unit = {
    courier.foreach(_.close())
    courier = None
    introduction = None
  }

  /** Where other executors reach it; empty where they cannot. */
  def addresses: Map[String, String] = introduction.fold(Map.empty[String, String])(_.addresses)

  override def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
      read: (MessageIn, String) => A
  ): Outcome[A] =
    courier.fold[Outcome[A]](Courier.none)(_.ask(peer, payload, limitMs)(read))
}
