package io.penstock.sidecars.transfer

import java.nio.ByteBuffer

/** Slots of a ring that this side fills. */
private[transfer] trait FreeSlots {

  /** Waits until the next one is free; gives its first `length` bytes. */
  def next(length: Int): ByteBuffer

  /** Hands it over. */
  def filled(messageBytes: Long, length: Int): Unit
}

/** Slots of a ring that the other side fills. */
private[transfer] trait FilledSlots {

  /** Waits until the next one is there, which must be of such a message and so long. */
  def next(messageBytes: Long, length: Int): ByteBuffer

  /** Gives it back. */
  def emptied(): Unit
}

/**
 * Cuts a message into slices while it is written.
 *
 * @param size
 *   of the message, in bytes
 */
final private[transfer] class SlicedOut(size: Long, slots: FreeSlots) extends MessageOut {
  private var left = size
  private var slot: ByteBuffer = _

  override def put(bytes: Array[Byte], from: Int, count: Int): Unit = {
    require(count <= left, s"$count bytes more, and $left are left of the $size that were announced")
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

  /** Checks that the message is whole; an empty one is an empty slice. */
  def finish(): Unit = {
    require(left == 0, s"$left bytes are missing of the $size that were announced")
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
 * Puts a message together from slices while it is read.
 *
 * @param size
 *   of the message, in bytes
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
    require(count >= 0 && count <= left, s"$count bytes wanted, $left are left")
    var at = from
    val end = from + count
    while (at < end) {
      val length = math.min(end - at, filled().remaining)
      slot.get(into, at, length)
      at += length
      taken(length)
    }
  }

  /** Takes what is left, for nobody. */
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
