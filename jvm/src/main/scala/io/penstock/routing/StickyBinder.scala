package io.penstock.routing

import io.penstock.conf.Settings

/**
 * Keeps the previous owners and moves as few shards as balance needs: no task above `theta` times the mean wherever
 * longest-processing-time-first could reach that, else no task above what that reaches.
 *
 * How: tasks above the limit give shards away, one at a time, the busiest task first. Usually the cheapest shard that
 * relieves the task, or the heaviest that fits elsewhere, goes to the fullest task that has room. Where a task would
 * need many small shards to go because of one hot shard, the hot shard itself is sent to a task that sheds fewer. Both
 * orders of tasks (busiest first, nearest to the limit first) are tried, and the one that moves less wins. Where there
 * are no previous owners, it starts from runs of neighbouring shards, which are cheap to fetch.
 *
 * @param theta
 *   busiest task over mean that is aimed at, greater than 1
 * @param deadBand
 *   imbalance for which nothing moves
 */
final class StickyBinder(theta: Double = Settings.Theta.default, deadBand: DeadBand = DeadBand.Empty) extends Binder {
  require(theta > 1, s"theta must be greater than 1, found $theta")

  override def tolerated(load: Array[Long], tasks: Int): Double = math.max(theta, deadBand.overMean(load, tasks))

  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] = {
    val owners = previous.filter(_.length == load.length).getOrElse(Load.neighbours(load, tasks))
    if (balanced(load, tasks, owners)) owners.clone() else relieve(load, tasks, owners)
  }

  /** Whether nothing has to move: most batches, so they do not pay for more than this question. */
  private def balanced(load: Array[Long], tasks: Int, owners: Array[Int]): Boolean =
    owners.forall(t => t >= 0 && t < tasks) && {
      val counts = new Array[Int](tasks)
      owners.foreach(counts(_) += 1)
      counts.max <= Shedding.maxShards(load.length, tasks) &&
      Load.ofTasks(load, owners, tasks).max <= tolerated(load, tasks) * load.sum / tasks
    }

  private def relieve(load: Array[Long], tasks: Int, owners: Array[Int]): Array[Int] = {
    val balanced = Load.longestFirst(load, tasks)
    val limit = math.max(theta * load.sum / tasks, Load.ofTasks(load, balanced, tasks).max.toDouble)
    val tries = Seq(true, false).flatMap { busiestFirst =>
      val shedding = new Shedding(load, tasks, owners, limit)
      if (shedding.run(busiestFirst)) Some(shedding.taskOf) else None
    }
    if (tries.isEmpty) Load.renumber(balanced, tasks, owners)
    else tries.minBy(t => Load.moved(Some(owners), t))
  }
}
