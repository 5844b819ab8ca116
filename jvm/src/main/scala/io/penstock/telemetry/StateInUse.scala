package io.penstock.telemetry

/**
 * When an operator has done with a key: operators that get rows grouped by key know that they have all of a key's rows when
 * they have the first row of the next, so that the rows do not tell, but the state does. For a task's own thread.
 */
final class StateInUse {
  private var watched = false
  private var leaving = 0
  private var lastUseNs = StateInUse.Never
  private var doneNs = StateInUse.Never

  /** Whether a use of state is to be told by [[used]]. */
  def isWatched: Boolean = watched

  /** From now on: the operator has got all rows of the key with this hash. */
  def watch(hash: Int): Unit = {
    watched = true
    leaving = hash
    lastUseNs = StateInUse.Never
    doneNs = StateInUse.Never
  }

  /** Some key's state is read or written. */
  def used(hash: Int): Unit =
    if (hash == leaving) lastUseNs = System.nanoTime()
    else {
      doneNs = System.nanoTime()
      watched = false
    }

  /**
   * Ends the watch.
   *
   * @param otherwise
   *   the answer where no state was used
   * @return
   *   when the state of another key was used for the first time, else that of the key itself for the last time
   */
  def doneAt(otherwise: Long): Long = {
    watched = false
    if (doneNs != StateInUse.Never) doneNs else if (lastUseNs != StateInUse.Never) lastUseNs else otherwise
  }
}

object StateInUse {
  private val Never = Long.MinValue
}
