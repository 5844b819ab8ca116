package io.penstock.routing

/**
 * The executors of an application, between which state would have to travel.
 *
 * @param executors
 *   as task locations
 * @param cores
 *   tasks that each can run at once, at least 1
 */
final case class Workers(executors: Vector[String], cores: Vector[Int]) {
  require(executors.size == cores.size, s"${executors.size} executors, and cores of ${cores.size}")

  def size: Int = executors.size

  /** Number of an executor; [[Workers.Unknown]] where it is none of these, or null. */
  def indexOf(executor: String): Int = numbers.getOrElse(executor, Workers.Unknown)

  /** Number of each shard's executor. */
  def of(owners: Array[String]): Array[Int] = owners.map(indexOf)

  /** Tasks of each worker, about as many for each core; None where one would have none. */
  def shares(tasks: Int): Option[TaskShares] = Option.when(size > 1 && tasks >= size)(TaskShares.of(cores, tasks))

  private lazy val numbers = executors.zipWithIndex.toMap
}

object Workers {

  /** In place of a worker: none has the shard. */
  val Unknown: Int = -1

  /** Where all tasks run in one JVM. */
  val None: Workers = Workers(Vector.empty, Vector.empty)
}

/**
 * Which tasks are which worker's: runs of neighbours.
 *
 * @param counts
 *   tasks of each worker, at least 1
 */
final class TaskShares private (val counts: Array[Int]) {

  /** First task of each worker, and the number of all tasks. */
  private val starts = counts.scanLeft(0)(_ + _)

  def workers: Int = counts.length

  def tasks: Int = starts.last

  /** The first task of a worker. */
  def start(worker: Int): Int = starts(worker)

  def workerOf(task: Int): Int = starts.lastIndexWhere(_ <= task)
}

private[routing] object TaskShares {

  /** One task for each worker, and each further one for the worker that has most cores for its tasks then (D'Hondt). */
  def of(cores: Seq[Int], tasks: Int): TaskShares = {
    val counts = Array.fill(cores.size)(1)
    (cores.size until tasks).foreach { _ =>
      val next = cores.indices.maxBy(w => (cores(w).toDouble / (counts(w) + 1), -w))
      counts(next) += 1
    }
    new TaskShares(counts)
  }
}
