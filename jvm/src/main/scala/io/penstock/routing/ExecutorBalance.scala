package io.penstock.routing

/**
 * Assigns shards to executors for one batch. A shard leaves its home executor only if the move pays off. This is the
 * greedy algorithm of the plans between batches (python/penstock/planning/executors.py), but it uses the exact load of
 * this batch, and a move must save more time than it costs within the batch.
 *
 * @param load
 *   load of each shard
 * @param counts
 *   number of tasks of each executor; an executor without tasks gets no shards
 * @param moveCost
 *   cost of moving each shard, in units of load; infinite if the shard must not move
 * @param theta
 *   largest imbalance between executors that is accepted
 */
final private[routing] class ExecutorBalance(
    load: Array[Long],
    counts: Array[Int],
    moveCost: Array[Double],
    theta: Double
) {
  private val work = new Array[Double](counts.length)
  private val shards = new Array[Int](counts.length)
  private val usable = counts.indices.filter(counts(_) > 0)

  /**
   * @param home
   *   home executor of each shard; a shard with [[ExecutorSet.Unknown]] starts on the executor with the lowest load per
   *   task
   * @return
   *   executor of each shard
   */
  def of(home: Array[Int]): Array[Int] = {
    val placed = home.clone()
    val (settled, homeless) =
      Load.heaviestFirst(load).partition(s => home(s) != ExecutorSet.Unknown && counts(home(s)) > 0)
    settled.foreach(s => book(s, home(s)))
    homeless.foreach { s =>
      val to = usable.minBy(w => ((work(w) + load(s)) / counts(w), shards(w).toDouble / counts(w), w))
      placed(s) = to
      book(s, to)
    }
    relieve(placed)
    placed
  }

  private def book(shard: Int, executor: Int): Unit = {
    work(executor) += load(shard)
    shards(executor) += 1
  }

  private def perTask(executor: Int): Double = work(executor) / counts(executor)

  private def busiest: Int = {
    var most = usable.head
    usable.foreach(w => if (perTask(w) > perTask(most)) most = w)
    most
  }

  /** Expected time of the batch in units of load; at least that of the heaviest shard, on whatever executor it is. */
  private def longest: Double = math.max(perTask(busiest), heaviest)

  private lazy val heaviest = load.maxOption.getOrElse(0L).toDouble

  /** Makes the best single move again and again, then undoes the moves after the point with the largest total gain. */
  private def relieve(placed: Array[Int]): Unit = {
    val limit = theta * load.sum / counts.sum
    val start = longest
    val made = scala.collection.mutable.ArrayBuffer[(Int, Int)]()
    var (spent, best, kept) = (0.0, 0.0, 0)
    var move = next(placed, limit)
    while (move.nonEmpty && made.size < load.length) {
      val (shard, to) = move.get
      made += shard -> placed(shard)
      work(placed(shard)) -= load(shard)
      work(to) += load(shard)
      placed(shard) = to
      spent += moveCost(shard)
      val gained = start - longest - spent
      if (gained > best) {
        best = gained
        kept = made.size
      }
      move = next(placed, limit)
    }
    made.drop(kept).reverseIterator.foreach { case (shard, from) => placed(shard) = from }
  }

  /**
   * The best single move of a shard away from the busiest executor; None if the load is balanced or no move pays off.
   */
  private def next(placed: Array[Int], limit: Double): Option[(Int, Int)] = {
    val from = busiest
    val most = perTask(from)
    var (best, shard, target) = (0.0, -1, -1)
    if (most > math.max(limit, heaviest)) placed.indices.foreach { s =>
      if (placed(s) == from && load(s) > 0L && moveCost(s) < most) {
        val left = (work(from) - load(s)) / counts(from)
        usable.foreach { w =>
          val there = (work(w) + load(s)) / counts(w)
          val worth = most - math.max(math.max(left, there), heaviest) - moveCost(s)
          if (w != from && worth > best) {
            best = worth
            shard = s
            target = w
          }
        }
      }
    }
    Option.when(shard >= 0)((shard, target))
  }
}
