package io.penstock.routing

/**
 * Keeps shards on their previous tasks and moves as few as balance requires. No task exceeds `theta` times the mean, or
 * the largest task of longest-processing-time-first (LPT) if that is larger.
 *
 * Tasks above the limit give shards away one at a time. Usually the lightest shard that relieves the task sufficiently,
 * or the heaviest that fits elsewhere, goes to the fullest task with enough room. If a task would have to give away
 * many small shards because of one hot shard, the hot shard itself moves to a task that has to give away fewer. Two
 * orders of tasks are tried, the busiest first and the one nearest to the limit first, and the result with fewer moves
 * is used. Without a previous binding the binder starts with contiguous ranges of shards, which are cheap to fetch.
 *
 * @param theta
 *   largest imbalance that is accepted, greater than 1
 * @param deadBand
 *   imbalance for which no shard is moved
 */
final class StickyBinder(theta: Double = StickyBinder.UsualTheta, deadBand: DeadBand = DeadBand.Empty) extends Binder {
  require(theta > 1, s"theta must be greater than 1, found $theta")

  override def tolerated(load: Array[Long], tasks: Int): Double = math.max(theta, deadBand.overMean(load, tasks))

  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] = {
    val owners = previous.filter(_.length == load.length).getOrElse(Load.neighbours(load, tasks))
    if (balanced(load, tasks, owners)) owners.clone() else relieve(load, tasks, owners)
  }

  /** Whether no shard has to move. This is true of most batches, so the check must be cheap. */
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

object StickyBinder {

  /** Default of `spark.penstock.theta`. */
  val UsualTheta = 1.003
}
