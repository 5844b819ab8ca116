package io.penstock.routing

/**
 * Which executor has which shards in one batch: as few leave their home as pay for it. The same greedy as the plans between
 * batches (python/penstock/planning/executors.py), with this batch's exact load and without a horizon: what a move takes must
 * come back in the same batch.
 *
 * @param counts
 *   tasks of each executor; one without is as good as gone
 * @param moveCost
 *   of each shard, in units of load; infinite where a move must not be
 * @param theta
 *   busiest executor over the mean that is left alone
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
   *   of each shard, [[ExecutorSet.Unknown]] where it has none: it begins where there is most room
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

  /** What the batch takes: no shorter than its heaviest shard, wherever that is. */
  private def longest: Double = math.max(perTask(busiest), heaviest)

  private lazy val heaviest = load.maxOption.getOrElse(0L).toDouble

  /** Makes moves, each the best by itself, and takes back those after the point at which all together gained most. */
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

  /** The shard of the busiest executor that is worth most elsewhere, and where; None where all is well, or none pays. */
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
