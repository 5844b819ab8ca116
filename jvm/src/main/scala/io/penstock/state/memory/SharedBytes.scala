package io.penstock.state.memory

/**
 * An array that several owners keep parts of. The collector frees all of it or nothing, so all of it counts while one
 * owner is left. Thread safe.
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
