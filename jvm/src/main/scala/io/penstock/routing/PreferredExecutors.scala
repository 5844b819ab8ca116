package io.penstock.routing

/** Chooses the executor on which each task should run. */
object PreferredExecutors {

  /**
   * Prefers the executor that holds most of a task's state, with a limit for each executor. The heaviest claims are
   * granted first, so tasks without a preference are those that lose least by running elsewhere.
   *
   * @param rows
   *   rows of each shard in this batch, which are the shard's weight: state that is used counts more
   * @param owners
   *   executor that holds each shard's state; null or missing if unknown
   * @param most
   *   largest number of tasks that may prefer the same executor
   * @return
   *   preferred executor of each task
   */
  def byState(binding: Binding, rows: Array[Long], owners: Array[String], most: Int): Array[Option[String]] = {
    val preferred = Array.fill(binding.tasks)(Option.empty[String])
    val known = binding.taskOf.indices.filter(s => s < owners.length && owners(s) != null)
    val claims = known.groupMapReduce(s => (binding.taskOf(s), owners(s)))(s => rows(s) + 1)(_ + _)
    val taken = scala.collection.mutable.HashMap.empty[String, Int].withDefaultValue(0)
    claims.toSeq.sortBy { case ((task, owner), weight) => (-weight, task, owner) }.foreach { case ((task, owner), _) =>
      if (preferred(task).isEmpty && taken(owner) < most) {
        preferred(task) = Some(owner)
        taken(owner) += 1
      }
    }
    preferred
  }
}
