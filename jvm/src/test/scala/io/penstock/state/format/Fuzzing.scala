package io.penstock.state.format

import java.lang.management.ManagementFactory

import scala.util.control.NonFatal

import io.penstock.Seed
import io.penstock.errors.PenstockException
import org.scalatest.Assertions

/**
 * What holds of every read of damaged bytes: it ends soon and takes little memory, and either returns something or throws
 * a [[PenstockException]]. What it may return, and throw, is for the suite to say.
 */
trait Fuzzing { this: Assertions =>
  import Fuzzing._

  private var inputs = 0L

  /** Damaged inputs since the last call. */
  def countedInputs(): Long = {
    val n = inputs
    inputs = 0L
    n
  }

  /** Reads a damaged input and judges what came of it; a failure names input and seed. */
  def fuzz[A](subject: String, input: Damage.Damaged)(read: Array[Byte] => A)(judge: Outcome[A] => Unit): Unit = {
    inputs += 1
    try judge(outcome(read(input.bytes)))
    catch {
      case NonFatal(e) => fail(s"$subject, ${input.what}: $e. Seed ${Seed.value}, input $inputs", e)
    }
  }

  /** What a reader told, or how it refused. */
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

  /** The error says that a file is corrupt, which one, and where. */
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

  /** File and byte of a PENSTOCK_CORRUPT_FILE, which may hold a damaged name. */
  val Place = """(?s)(\S+) cannot be used: .+, at byte (\d+)(?:; .+ needs it: restore .+)?""".r

  /** Far less than any length that damage announces, far more than the inputs need. */
  private val MaxAllocatedBytes = 4L << 20
  private val MaxMs = 5000L
  private val threads = ManagementFactory.getThreadMXBean.asInstanceOf[com.sun.management.ThreadMXBean]
}
