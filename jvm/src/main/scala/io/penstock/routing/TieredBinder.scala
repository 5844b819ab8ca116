package io.penstock.routing

/**
 * Binds shards in two steps. Shards stay on the executor that holds their state, unless a move to another executor
 * shortens the batch by more than the transfer of the state takes (decision 064). The sticky binder then divides the
 * shards of each executor among its tasks, which transfers no state.
 *
 * @param theta
 *   largest imbalance that is accepted, greater than 1
 * @param deadBand
 *   imbalance for which no shard is moved
 * @param shares
 *   division of tasks among executors
 * @param home
 *   executor that holds each shard's state; [[ExecutorSet.Unknown]] if none does
 * @param moveCost
 *   cost of moving each shard, in units of load; infinite if the shard must not move
 * @param before
 *   binding of the previous batch in terms of `shares`: task of each shard, -1 if the shard ran on another executor
 *   than `home`
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
    require(
      tasks == shares.tasks && load.length == home.length,
      s"expected ${shares.tasks} tasks and ${home.length} shards, found $tasks and ${load.length}"
    )
    val executor = new ExecutorBalance(load, shares.counts, moveCost, tolerated(load, tasks)).of(home)
    val taskOf = new Array[Int](load.length)
    (0 until shares.executors).filter(shares.counts(_) > 0).foreach { w =>
      val shardsHere = executor.indices.filter(executor(_) == w).toArray
      val (start, count) = (shares.start(w), shares.counts(w))
      // Task `count` does not exist on this executor: it stands for no owner.
      val owners =
        shardsHere.map(s => if (before(s) >= start && before(s) < start + count) before(s) - start else count)
      val known = Option.when(owners.exists(_ < count))(owners)
      val bound = new StickyBinder(theta, deadBand).bind(shardsHere.map(load(_)), count, known)
      shardsHere.indices.foreach(i => taskOf(shardsHere(i)) = start + bound(i))
    }
    taskOf
  }
}

object TieredBinder {

  /**
   * Translates the binding of the previous batch to a new division of tasks among executors. The result is the task of
   * each shard, or -1 if the shard's executor is no longer `home` or does not have that task any more.
   *
   * @param taskOf
   *   task of each shard in the previous batch
   * @param executorOf
   *   preferred executor of each task of the previous batch
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
