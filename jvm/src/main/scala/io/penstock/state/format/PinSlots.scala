package io.penstock.state.format

import io.penstock.sharding.Layout

/** Pin slots of a layout as bytes. */
object PinSlots {

  /** Writes the pin slots: docs/PROTOCOL.md, "Manifest". */
  def put(out: ByteSink, pinSlots: Vector[Option[Int]]): Unit = {
    out.putVarint(pinSlots.size)
    pinSlots.foreach {
      case None => out.putByte(0)
      case Some(hash) => out.putByte(1); out.putInt(hash)
    }
  }

  /**
   * Reads pin slots.
   *
   * @throws io.penstock.state.format.MalformedData
   *   if they are not valid pin slots of a layout
   */
  def get(in: ByteSource): Vector[Option[Int]] = {
    val at = in.consumed
    val pinSlots = Vector.fill(in.getCount("number of pin slots", math.min(Layout.MaxPinSlots, in.remaining))) {
      val flagAt = in.consumed
      in.getByte() match {
        case 0 => None
        case 1 => Some(in.getInt())
        case f => throw new MalformedData(s"unknown flag $f of a pin slot", flagAt)
      }
    }
    if (pinSlots.lastOption.contains(None)) throw new MalformedData("the last pin slot is free", at)
    if (pinSlots.flatten.distinct.size != pinSlots.flatten.size) throw new MalformedData("a hash is pinned twice", at)
    pinSlots
  }
}
