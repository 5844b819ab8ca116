package io.penstock.routing

/** Which executor each task should run on. */
object PreferredExecutors {

  /**
   * The executor that owns most of a task's state, within limits. Heaviest claims first, so what is left without a
   * preference is what costs least elsewhere.
   *
   * @param rows
   *   rows of each shard in this batch: state that is used counts more than state that only has to be there
   * @param owners
   *   executor that has each shard's state; null, or no entry, where unknown
   * @param most
   *   tasks that may prefer one executor
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
