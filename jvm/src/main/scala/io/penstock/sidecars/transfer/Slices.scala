package io.penstock.sidecars.transfer

import java.nio.ByteBuffer

/** Slots of a ring buffer that this side fills. */
private[transfer] trait FreeSlots {

  /** Waits until the next slot is free and returns its first `length` bytes. */
  def next(length: Int): ByteBuffer

  /** Hands the slot over to the other side. */
  def filled(messageBytes: Long, length: Int): Unit
}

/** Slots of a ring buffer that the other side fills. */
private[transfer] trait FilledSlots {

  /** Waits for the next slot, which must belong to a message of this size and contain `length` bytes. */
  def next(messageBytes: Long, length: Int): ByteBuffer

  /** Returns the slot to the other side. */
  def emptied(): Unit
}

/**
 * Splits a message into slices while it is written.
 *
 * @param size
 *   size of the message in bytes
 */
final private[transfer] class SlicedOut(size: Long, slots: FreeSlots) extends MessageOut {
  private var left = size
  private var slot: ByteBuffer = _

  override def put(bytes: Array[Byte], from: Int, count: Int): Unit = {
    require(count <= left, s"cannot write $count more bytes: $left of the announced $size bytes are left")
    var at = from
    val end = from + count
    while (at < end) {
      if (slot == null) slot = slots.next(math.min(left, ExecutorChannel.SliceBytes.toLong).toInt)
      val length = math.min(end - at, slot.remaining)
      slot.put(bytes, at, length)
      at += length
      left -= length
      if (!slot.hasRemaining) handOver()
    }
  }

  /** Checks that the message is complete. An empty message is sent as one empty slice. */
  def finish(): Unit = {
    require(left == 0, s"the message is incomplete: $left of the announced $size bytes are missing")
    if (size == 0) {
      slot = slots.next(0)
      handOver()
    }
  }

  private def handOver(): Unit = {
    val length = slot.position()
    slot = null
    slots.filled(size, length)
  }
}

/**
 * Joins the slices of a message while it is read.
 *
 * @param size
 *   size of the message in bytes
 */
final private[transfer] class SlicedIn(size: Int, slots: FilledSlots) extends MessageIn {
  private var left = size
  private var slot: ByteBuffer = _
  if (size == 0) {
    slots.next(0L, 0)
    slots.emptied()
  }

  override def remaining: Int = left

  override def read(into: Array[Byte], from: Int, count: Int): Unit = {
    require(count >= 0 && count <= left, s"cannot read $count bytes, $left are left")
    var at = from
    val end = from + count
    while (at < end) {
      val length = math.min(end - at, filled().remaining)
      slot.get(into, at, length)
      at += length
      taken(length)
    }
  }

  /** Skips the rest of the message. */
  def skip(): Unit = while (left > 0) {
    val length = filled().remaining
    slot.position(slot.limit())
    taken(length)
  }

  private def filled(): ByteBuffer = {
    if (slot == null) slot = slots.next(size.toLong, math.min(left, ExecutorChannel.SliceBytes))
    slot
  }

  private def taken(length: Int): Unit = {
    left -= length
    if (left == 0 || !slot.hasRemaining) {
      slot = null
      slots.emptied()
    }
  }
}
