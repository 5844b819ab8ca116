package io.penstock.state.format

import java.lang.management.ManagementFactory

import scala.util.control.NonFatal

import io.penstock.Seed
import io.penstock.errors.{ErrorConditions, PenstockException}
import org.scalatest.Assertions

/**
 * Checks that every read of damaged bytes ends soon, takes little memory, and either returns a value or throws a
 * [[PenstockException]]. The suite decides which values and errors are correct.
 */
trait Fuzzing { this: Assertions =>
  import Fuzzing._

  private var inputs = 0L

  // The first error of a JVM reads the registry of errors, whose memory is not the reader's.
  ErrorConditions.all: Unit

  /** Number of damaged inputs since the last call. */
  def countedInputs(): Long = {
    val n = inputs
    inputs = 0L
    n
  }

  /** Reads a damaged input and checks the outcome with `judge`. A failure names the input and the seed. */
  def fuzz[A](subject: String, input: Damage.Damaged)(read: Array[Byte] => A)(judge: Outcome[A] => Unit): Unit = {
    inputs += 1
    try judge(outcome(read(input.bytes)))
    catch {
      case NonFatal(e) => fail(s"$subject, ${input.change}: $e. Seed ${Seed.value}, input $inputs", e)
    }
  }

  /** The value that a reader returns, or the error that it throws. */
  def outcome[A](read: => A): Outcome[A] = {
    val thread = Thread.currentThread().getId
    val (allocated, start) = (threads.getThreadAllocatedBytes(thread), System.nanoTime())
    val outcome =
      try Right(read)
      catch { case e: PenstockException => Left(e) }
    val took = threads.getThreadAllocatedBytes(thread) - allocated
    val elapsedMs = (System.nanoTime() - start) / 1000000L
    assert(took < MaxAllocatedBytes, s"the reader took $took bytes of memory")
    assert(elapsedMs < MaxMs, s"the reader took $elapsedMs ms")
    outcome
  }

  /** Checks that the error reports a corrupt file, with its name and a position within the given bytes. */
  def corrupt(e: PenstockException, file: String, least: Long, most: Long): Unit = {
    assert(e.errorClass == "PENSTOCK_CORRUPT_FILE", e)
    e.detail match {
      case Place(name, at) =>
        assert(name == file || name.endsWith(s"/$file"), e)
        assert(at.toLong >= least && at.toLong <= most, s"$e: not between bytes $least and $most")
      case _ => fail(s"$e names no place")
    }
  }
}

object Fuzzing {
  type Outcome[A] = Either[PenstockException, A]

  /** File and position in the message of a PENSTOCK_CORRUPT_FILE error. The name may contain damage. */
  val Place = """(?s)(\S+) cannot be used: .+, at byte (\d+)(?:; .+ needs it: restore .+)?""".r

  /** Far below the lengths that damage announces, and far above what the inputs need. */
  private val MaxAllocatedBytes = 4L << 20
  private val MaxMs = 5000L
  private val threads = ManagementFactory.getThreadMXBean.asInstanceOf[com.sun.management.ThreadMXBean]
}
