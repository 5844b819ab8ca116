package io.penstock.routing

/**
 * Keeps the previous owners and moves as few shards as balance needs: no task above `theta` times the mean wherever
 * longest-processing-time-first could reach that, else no task above what that reaches.
 *
 * How: tasks above the limit give shards away, one at a time, the busiest task first. Usually the cheapest shard that
 * relieves the task, or the heaviest that fits elsewhere, goes to the fullest task that has room. Where a task would
 * need many small shards to go because of one hot shard, the hot shard itself is sent to a task that sheds fewer. Both
 * orders of tasks (busiest first, nearest to the limit first) are tried, and the one that moves less wins.
 *
 * @param theta
 *   busiest task over mean that is aimed at, greater than 1
 */
final class StickyBinder(theta: Double = 1.05) extends Binder {
  require(theta > 1, s"theta must be greater than 1, found $theta")

  override def bind(rows: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] = {
    val balanced = Load.longestFirst(rows, tasks)
    previous match {
      case Some(owners) if owners.length == rows.length => stay(rows, tasks, owners, balanced)
      case _ => balanced
    }
  }

  private def stay(rows: Array[Long], tasks: Int, owners: Array[Int], balanced: Array[Int]): Array[Int] = {
    val limit = math.max(theta * rows.sum / tasks, Load.ofTasks(rows, balanced, tasks).max.toDouble)
    val tries = Seq(true, false).flatMap { busiestFirst =>
      val shedding = new Shedding(rows, tasks, owners, limit)
      if (shedding.run(busiestFirst)) Some(shedding.taskOf) else None
    }
    if (tries.isEmpty) Load.renumber(balanced, tasks, owners)
    else tries.minBy(t => Load.moved(Some(owners), t))
  }
}
