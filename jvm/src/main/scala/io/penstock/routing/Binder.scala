package io.penstock.routing

/** Decides which task runs which shards. The result depends on the arguments only. */
trait Binder {

  /**
   * Binds every shard to a task.
   *
   * @param load
   *   load of each shard in this batch: its rows, weighted with their expected cost
   * @param tasks
   *   number of tasks, at least 1
   * @param previous
   *   task of each shard in the previous batch, which may have had more tasks; None if there is no previous binding
   * @return
   *   task of each shard, in `0 until tasks`
   */
  def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int]

  /** Imbalance up to which no shard is moved. */
  def tolerated(load: Array[Long], tasks: Int): Double = 1.0
}

/**
 * Follows the plan made before the batch. Without a plan for this number of tasks, shards stay on their previous tasks;
 * if that is not possible, they are bound by shard id.
 */
final class PlannedBinder(planned: Option[Array[Int]]) extends Binder {
  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] =
    (planned ++ previous).find(p => p.length == load.length && p.forall(t => t >= 0 && t < tasks))
      .fold(StaticBinder.bind(load, tasks, None))(_.clone())
}

/**
 * Binds contiguous ranges of shards to tasks, whatever the load is. A reduce task fetches one contiguous block from
 * each map task.
 */
object StaticBinder extends Binder {
  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] =
    Array.tabulate(load.length)(s => (s.toLong * tasks / load.length).toInt)
}

/** Binds shards at random, for tests. The binding depends on the seed, the batch and the region only. */
final class ChaosBinder(seed: Long, batch: Long, region: Long) extends Binder {
  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] = {
    val random = Chaos.random(seed, batch, region)
    Array.fill(load.length)(random.nextInt(tasks))
  }
}

private[routing] object Chaos {

  /** A random generator for a seed, a batch and a region. Adjacent batches and regions have unrelated streams. */
  def random(seed: Long, batch: Long, region: Long): java.util.SplittableRandom =
    new java.util.SplittableRandom(new java.util.SplittableRandom(seed * 31 + batch).nextLong() * 31 + region)
}
