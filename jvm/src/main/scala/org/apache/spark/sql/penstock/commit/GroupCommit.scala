package org.apache.spark.sql.penstock.commit

import java.util.concurrent.{Executor, RejectedExecutionException}

import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

/**
 * Writes one manifest at a time. Commits that arrive while a manifest is written share the next one.
 *
 * @param write
 *   writes a manifest with every commit that counts so far, and returns their number
 * @param writers
 *   threads that call `write`
 */
final private class GroupCommit(write: () => Long, writers: Executor) {

  /** A commit that is answered once a manifest with at least `commits` commits is durable. */
  final private class Waiting(val commits: Long, val answer: Try[Unit] => Unit)

  private val waiting = mutable.Buffer[Waiting]()
  private var isWriting = false

  /**
   * Adds a commit. The caller then calls [[start]], after it has released every lock that `write` or the answer needs.
   *
   * @param commits
   *   number of commits that a manifest must have to contain this one
   * @param answer
   *   receives the outcome of the manifest that contains the commit
   */
  def add(commits: Long, answer: Try[Unit] => Unit): Unit = synchronized {
    waiting += new Waiting(commits, answer)
  }

  /** Starts to write if a commit waits and no manifest is being written. */
  def start(): Unit = {
    val isNeeded = synchronized {
      val needed = waiting.nonEmpty && !isWriting
      isWriting ||= needed
      needed
    }
    if (isNeeded) {
      try writers.execute(() => writeAll())
      catch { case e: RejectedExecutionException => stop(e) }
    }
  }

  /** Waits until no commit waits. */
  def awaitIdle(): Unit = synchronized {
    while (isWriting || waiting.nonEmpty) wait()
  }

  @tailrec
  private def writeAll(): Unit = if (hasMore) {
    Attempted(write()) match {
      case Success(commits) => answer(Success(()), commits)
      case Failure(NonFatal(e)) => answer(Failure(e), Long.MaxValue)
      case Failure(fatal) =>
        // This thread may not be able to go on writing.
        stop(fatal)
        throw fatal
    }
    writeAll()
  }

  private def hasMore: Boolean = synchronized {
    if (waiting.isEmpty) becomeIdle()
    isWriting
  }

  private def stop(e: Throwable): Unit = {
    synchronized(becomeIdle())
    answer(Failure(e), Long.MaxValue)
  }

  private def becomeIdle(): Unit = {
    isWriting = false
    notifyAll()
  }

  /** Answers the commits that wait for a manifest with at most this number of commits. */
  private def answer(outcome: Try[Unit], commits: Long): Unit = {
    val answered = synchronized {
      val (covered, later) = waiting.toSeq.partition(_.commits <= commits)
      waiting.clear()
      waiting ++= later
      notifyAll()
      covered
    }
    answered.foreach(_.answer(outcome))
  }
}

/** Like [[scala.util.Try]], but catches every error, because a task that waits for an answer must get one. */
private object Attempted {
  def apply[A](body: => A): Try[A] =
    try Success(body)
    catch { case e: Throwable => Failure(e) }
}
