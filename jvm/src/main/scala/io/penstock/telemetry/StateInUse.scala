package io.penstock.telemetry

/**
 * Determines when an operator has finished with a key. An operator whose input is grouped by key knows that a key is
 * complete when it has read the first row of the next key. The end of a key is therefore visible only in its use of
 * state. Only for use by the task's thread.
 */
final class StateInUse {
  private var watched = false
  private var completeHash = 0
  private var lastUseNs = StateInUse.Never
  private var doneNs = StateInUse.Never

  /** Whether uses of state must be reported to [[used]]. */
  def isWatched: Boolean = watched

  /** Starts to watch: the operator has read all rows of the key with this hash. */
  def watch(hash: Int): Unit = {
    watched = true
    completeHash = hash
    lastUseNs = StateInUse.Never
    doneNs = StateInUse.Never
  }

  /** Reports that the state of the key with this hash is read or written. */
  def used(hash: Int): Unit =
    if (hash == completeHash) lastUseNs = System.nanoTime()
    else {
      doneNs = System.nanoTime()
      watched = false
    }

  /**
   * Ends the watch.
   *
   * @param otherwise
   *   Result if no state was used
   * @return
   *   Time of the first use of another key's state or, if there was none, of the last use of the key's own state
   */
  def doneAt(otherwise: Long): Long = {
    watched = false
    if (doneNs != StateInUse.Never) doneNs else if (lastUseNs != StateInUse.Never) lastUseNs else otherwise
  }
}

object StateInUse {
  private val Never = Long.MinValue
}
