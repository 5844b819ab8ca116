package io.penstock.routing

/**
 * The executors of an application, between which state would have to travel.
 *
 * @param locations
 *   as task locations
 * @param cores
 *   tasks that each can run at once, at least 1
 */
final case class ExecutorSet(locations: Vector[String], cores: Vector[Int]) {
  require(locations.size == cores.size, s"${locations.size} executors, and cores of ${cores.size}")

  def size: Int = locations.size

  /** Number of an executor; [[ExecutorSet.Unknown]] where it is none of these, or null. */
  def indexOf(executor: String): Int = numbers.getOrElse(executor, ExecutorSet.Unknown)

  /** Number of each shard's executor. */
  def of(owners: Array[String]): Array[Int] = owners.map(indexOf)

  /**
   * Tasks of each executor: as planned, where that is for as many tasks; else as in the batch before, where that leaves no executor
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
      TaskShares.of(locations.map(on.getOrElse(_, 0)))
    )

  private lazy val numbers = locations.zipWithIndex.toMap
}

object ExecutorSet {

  /** In place of an executor: none has the shard. */
  val Unknown: Int = -1

  /** Where all tasks run in one JVM. */
  val None: ExecutorSet = ExecutorSet(Vector.empty, Vector.empty)
}

/**
 * Which tasks are which executor's: runs of neighbours.
 *
 * @param counts
 *   tasks of each executor, 0 or more
 */
final class TaskShares private (val counts: Array[Int]) {

  /** First task of each executor, and the number of all tasks. */
  private val starts = counts.scanLeft(0)(_ + _)

  def executors: Int = counts.length

  def tasks: Int = starts.last

  /** The first task of an executor. */
  def start(executor: Int): Int = starts(executor)

  def executorOf(task: Int): Int = starts.lastIndexWhere(_ <= task)
}

private[routing] object TaskShares {

  def of(counts: Seq[Int]): TaskShares = new TaskShares(counts.toArray)

  /** One task for each executor, and each further one for the executor that has most cores for its tasks then (D'Hondt). */
  def byCores(cores: Seq[Int], tasks: Int): TaskShares = {
    val counts = Array.fill(cores.size)(1)
    (cores.size until tasks).foreach { _ =>
      val next = cores.indices.maxBy(w => (cores(w).toDouble / (counts(w) + 1), -w))
      counts(next) += 1
    }
    new TaskShares(counts)
  }
}
