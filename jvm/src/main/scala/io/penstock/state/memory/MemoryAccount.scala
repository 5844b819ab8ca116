package io.penstock.state.memory

/** Counts heap bytes of state, in this account and its parent. Reading the count is one field access. Thread safe. */
final class MemoryAccount(parent: Option[MemoryAccount] = None) {
  @volatile private var held = 0L
  private var open = true

  def bytes: Long = held

  /** Adds bytes that were allocated, or a negative number for bytes that were released. */
  def add(bytes: Long): Unit = synchronized {
    if (open && bytes != 0L) {
      held += bytes
      parent.foreach(_.add(bytes))
    }
  }

  /** Releases all bytes. Late users of the dropped memory are not counted any more; it is freed when they end. */
  def close(): Unit = synchronized {
    add(-held)
    open = false
  }
}
