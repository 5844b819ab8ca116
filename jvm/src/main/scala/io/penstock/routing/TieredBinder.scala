package io.penstock.routing

/**
 * Shards stay on the executor that has their state, and are spread over its tasks by the sticky binder, which moves no byte.
 * To another executor they go where the batch gets shorter by more than the state takes to travel (decision 064).
 *
 * @param theta
 *   busiest over mean that is aimed at, greater than 1
 * @param deadBand
 *   imbalance for which nothing moves
 * @param shares
 *   which tasks are which executor's
 * @param home
 *   executor that has each shard's state; [[ExecutorSet.Unknown]] where none has
 * @param moveCost
 *   of each shard, in units of load; infinite where a move must not be
 * @param before
 *   the binding of the batch before in terms of `shares`: task of each shard, -1 where it ran on another executor than `home`
 */
final class TieredBinder(
    theta: Double,
    deadBand: DeadBand,
    shares: TaskShares,
    home: Array[Int],
    moveCost: Array[Double],
    before: Array[Int]
) extends Binder {

  override def tolerated(load: Array[Long], tasks: Int): Double = math.max(theta, deadBand.overMean(load, tasks))

  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] = {
    require(tasks == shares.tasks && load.length == home.length, s"$tasks tasks and ${load.length} shards are others")
    val executor = new ExecutorBalance(load, shares.counts, moveCost, tolerated(load, tasks)).of(home)
    val taskOf = new Array[Int](load.length)
    (0 until shares.executors).filter(shares.counts(_) > 0).foreach { w =>
      val its = executor.indices.filter(executor(_) == w).toArray
      val (start, count) = (shares.start(w), shares.counts(w))
      // A task that does not exist owns nothing.
      val owners = its.map(s => if (before(s) >= start && before(s) < start + count) before(s) - start else count)
      val known = Option.when(owners.exists(_ < count))(owners)
      val bound = new StickyBinder(theta, deadBand).bind(its.map(load(_)), count, known)
      its.indices.foreach(i => taskOf(its(i)) = start + bound(i))
    }
    taskOf
  }
}

object TieredBinder {

  /**
   * The batch before in terms of other shares of tasks: task of each shard where its executor is still `home` and still has
   * that task, else -1.
   *
   * @param taskOf
   *   task of each shard in the batch before
   * @param executorOf
   *   executor that each of its tasks was meant for
   */
  def before(
      taskOf: Array[Int],
      executorOf: IndexedSeq[String],
      executors: ExecutorSet,
      shares: TaskShares,
      home: Array[Int]
  ): Array[Int] = {
    val firstOf = executorOf.zipWithIndex.groupMapReduce(_._1)(_._2)(math.min)
    taskOf.zip(home).map { case (task, w) =>
      val executor = executorOf.lift(task)
      val at = executor.fold(-1)(task - firstOf(_))
      if (w >= 0 && executor.contains(executors.locations(w)) && at < shares.counts(w)) shares.start(w) + at else -1
    }
  }
}
