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

  /**
   * Tasks of each worker: as planned, where that is for as many tasks; else as in the batch before, where that leaves no worker
   * without a task, or cannot but do so; else about as many for each core.
   *
   * @param planned
   *   tasks on each executor; empty where they go by cores
   * @param before
   *   executor that each task of the batch before was meant for; empty where that was left open
   * @return
   *   None where executors do not matter, or nothing says which of them few tasks are on
   */
  def shares(tasks: Int, planned: Map[String, Int] = Map.empty, before: Seq[String] = Nil): Option[TaskShares] =
    if (size < 2) None
    else fitting(tasks, planned)
      .orElse(fitting(tasks, before.groupMapReduce(identity)(_ => 1)(_ + _))
        .filter(s => tasks < size || s.counts.forall(_ > 0)))
      .orElse(Option.when(tasks >= size)(TaskShares.byCores(cores, tasks)))

  private def fitting(tasks: Int, on: Map[String, Int]): Option[TaskShares] =
    Option.when(on.values.sum == tasks && on.keys.forall(numbers.contains))(
      TaskShares.of(executors.map(on.getOrElse(_, 0)))
    )

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
 *   tasks of each worker, 0 or more
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

  def of(counts: Seq[Int]): TaskShares = new TaskShares(counts.toArray)

  /** One task for each worker, and each further one for the worker that has most cores for its tasks then (D'Hondt). */
  def byCores(cores: Seq[Int], tasks: Int): TaskShares = {
    val counts = Array.fill(cores.size)(1)
    (cores.size until tasks).foreach { _ =>
      val next = cores.indices.maxBy(w => (cores(w).toDouble / (counts(w) + 1), -w))
      counts(next) += 1
    }
    new TaskShares(counts)
  }
}
