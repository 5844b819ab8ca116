package io.penstock.routing

/**
 * Which task runs which shards in one batch. It is part of the task binary of the stage that reads the shards.
 *
 * @param tasks
 *   number of tasks, N
 * @param taskOf
 *   task of each shard; its length is the number of shards
 */
final class Binding(val tasks: Int, val taskOf: Array[Int]) extends Serializable {
  require(tasks > 0, s"a binding must have at least one task, found $tasks")
  require(taskOf.forall(t => t >= 0 && t < tasks), s"a shard is bound to a task outside 0 to ${tasks - 1}")

  /** Number of shards. */
  def shards: Int = taskOf.length

  /** The shards of one task, in ascending order. */
  def shardsOf(task: Int): Array[Int] = taskOf.indices.filter(taskOf(_) == task).toArray

  /** The shards of one task as contiguous ranges `[start, end)`, in ascending order. */
  def runsOf(task: Int): Seq[(Int, Int)] = {
    val runs = Seq.newBuilder[(Int, Int)]
    var i = 0
    while (i < taskOf.length) {
      if (taskOf(i) == task) {
        val start = i
        while (i < taskOf.length && taskOf(i) == task) i += 1
        runs += ((start, i))
      } else i += 1
    }
    runs.result()
  }

  override def equals(other: Any): Boolean = other match {
    case b: Binding => b.tasks == tasks && java.util.Arrays.equals(b.taskOf, taskOf)
    case _ => false
  }
  override def hashCode(): Int = tasks * 31 + java.util.Arrays.hashCode(taskOf)
  override def toString: String = s"Binding(tasks=$tasks, shards=$shards)"
}

object Binding {

  /** Task p runs shard p, as in plain Spark. */
  def identity(shards: Int): Binding = new Binding(shards, Array.tabulate(shards)(i => i))
}
