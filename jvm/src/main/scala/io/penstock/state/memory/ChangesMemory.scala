package io.penstock.state.memory

import io.penstock.errors.PenstockException

/** Heap bytes of the changes of one task attempt to one store. */
final class ChangesMemory(bound: MemoryBound) {
  private val account = new MemoryAccount(Some(bound.held))
  private var failure: PenstockException = _

  /**
   * Records that the changes have grown.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_TOO_LARGE if state then exceeds the memory limit
   */
  def grew(bytes: Long): Unit = {
    account.add(bytes)
    try bound.verify()
    catch {
      case e: PenstockException =>
        failure = e
        throw e
    }
  }

  /** Throws the error of an earlier [[grew]] again before a commit. A user function may have caught and ignored it. */
  def verifyComplete(): Unit = if (failure != null) throw failure

  /** Called when the attempt no longer needs its changes. */
  def release(): Unit = account.close()
}
