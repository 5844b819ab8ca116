package io.penstock

import org.scalatest.concurrent.Eventually
import org.scalatest.exceptions.TestFailedDueToTimeoutException
import org.scalatest.time.{Millis, Seconds, Span}

/**
 * How tests wait for what other threads and processes do: until it is seen, and not for a time after which it should
 * have happened. The limit is only reached by a test that fails, so it suits slow machines.
 */
trait Patience extends Eventually {
  implicit override val patienceConfig: PatienceConfig = PatienceConfig(Span(60, Seconds), Span(10, Millis))

  /** Waits until `condition` holds, at most for `limit`. Returns whether it does. */
  def holdsWithin(limit: Span, every: Span = patienceConfig.interval)(condition: => Boolean): Boolean =
    try eventually(timeout(limit), interval(every)) {
        if (!condition) throw Patience.NotYet
        true
      }
    catch { case _: TestFailedDueToTimeoutException => false }
}

/** For code that is no suite. */
object Patience extends Patience {
  private object NotYet extends RuntimeException("the condition does not hold yet", null, false, false)
}
