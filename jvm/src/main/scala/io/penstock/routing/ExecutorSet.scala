package io.penstock.routing

/**
 * The executors of an application.
 *
 * @param locations
 *   task location of each executor
 * @param cores
 *   number of tasks that each executor can run at once, at least 1
 */
final case class ExecutorSet(locations: Vector[String], cores: Vector[Int]) {
  require(locations.size == cores.size, s"${locations.size} executors, but core counts for ${cores.size}")

  def size: Int = locations.size

  /** Index of an executor; [[ExecutorSet.Unknown]] if it is not in this set, or is null. */
  def indexOf(executor: String): Int = numbers.getOrElse(executor, ExecutorSet.Unknown)

  /** Index of the executor of each shard. */
  def of(owners: Array[String]): Array[Int] = owners.map(indexOf)

  /**
   * Divides tasks among the executors: as planned, if the plan is for this number of tasks; else as in the previous
   * batch, unless this would leave an executor without a task although there are enough tasks; else in proportion to
   * cores.
   *
   * @param planned
   *   planned number of tasks on each executor; empty if there is no plan
   * @param before
   *   preferred executor of each task of the previous batch; empty if there was none
   * @return
   *   None with fewer than two executors, or if there are fewer tasks than executors and neither `planned` nor `before`
   *   applies
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

  /** Stands for "no executor", for example of a shard that no executor holds. */
  val Unknown: Int = -1

  /** The set for local mode, in which all tasks run in one JVM. */
  val None: ExecutorSet = ExecutorSet(Vector.empty, Vector.empty)
}

/**
 * Division of tasks among executors. Each executor has a contiguous range of tasks.
 *
 * @param counts
 *   number of tasks of each executor, 0 or more
 */
final class TaskShares private (val counts: Array[Int]) {

  /** First task of each executor, followed by the total number of tasks. */
  private val starts = counts.scanLeft(0)(_ + _)

  def executors: Int = counts.length

  def tasks: Int = starts.last

  /** The first task of an executor. */
  def start(executor: Int): Int = starts(executor)

  def executorOf(task: Int): Int = starts.lastIndexWhere(_ <= task)
}

private[routing] object TaskShares {

  def of(counts: Seq[Int]): TaskShares = new TaskShares(counts.toArray)

  /** Gives each executor one task, and each further task to the executor with the most cores per task (D'Hondt). */
  def byCores(cores: Seq[Int], tasks: Int): TaskShares = {
    val counts = Array.fill(cores.size)(1)
    (cores.size until tasks).foreach { _ =>
      val next = cores.indices.maxBy(w => (cores(w).toDouble / (counts(w) + 1), -w))
      counts(next) += 1
    }
    new TaskShares(counts)
  }
}
