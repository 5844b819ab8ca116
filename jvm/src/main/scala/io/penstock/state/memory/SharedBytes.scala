package io.penstock.state.memory

/**
 * An array whose parts have several owners. The garbage collector can free it only as a whole, so all its bytes are
 * counted until the last owner releases it. Thread safe.
 */
final class SharedBytes(val array: Array[Byte], account: MemoryAccount) {
  private var owners = 0

  def retain(): Unit = synchronized {
    if (owners == 0) account.add(array.length.toLong)
    owners += 1
  }

  def release(): Unit = synchronized {
    owners -= 1
    if (owners == 0) account.add(-array.length.toLong)
  }
}
