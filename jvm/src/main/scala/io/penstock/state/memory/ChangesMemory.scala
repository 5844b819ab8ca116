package io.penstock.state.memory

import io.penstock.errors.PenstockException

/** Heap bytes of what one task attempt has changed in one store. */
final class ChangesMemory(bound: MemoryBound) {
  private val account = new MemoryAccount(Some(bound.held))
  private var refused: PenstockException = _

  /**
   * Notes that the changes have grown.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_TOO_LARGE
   */
  def grew(bytes: Long): Unit = {
    account.add(bytes)
    try bound.verify()
    catch {
      case e: PenstockException =>
        refused = e
        throw e
    }
  }

  /** Refuses to commit what was refused before: a user's function may have caught the error and gone on. */
  def verifyComplete(): Unit = if (refused != null) throw refused

  /** The attempt needs its changes no more. */
  def release(): Unit = account.close()
}
