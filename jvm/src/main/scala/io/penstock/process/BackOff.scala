package io.penstock.process

/** Pause before a failed sidecar is started again. */
object BackOff {
  private val LongestPauseMs = 60000L

  /** Pause after a number of failures in a row: 1 s, 2 s, 4 s, ... 60 s. */
  def pauseMs(failures: Int): Long = math.min(LongestPauseMs, 1000L << math.min(failures - 1, 16))
}
