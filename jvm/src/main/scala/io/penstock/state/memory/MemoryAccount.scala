package io.penstock.state.memory

/** Counts heap bytes that state holds, here and in the account above. To read it costs a field. Thread safe. */
final class MemoryAccount(above: Option[MemoryAccount] = None) {
  @volatile private var held = 0L
  private var open = true

  def bytes: Long = held

  /** Bytes that were taken; negative where they were given back. */
  def add(bytes: Long): Unit = synchronized {
    if (open && bytes != 0L) {
      held += bytes
      above.foreach(_.add(bytes))
    }
  }

  /** Gives all bytes back. A late user of what was dropped is counted no more: the collector has it when he goes. */
  def close(): Unit = synchronized {
    add(-held)
    open = false
  }
}
