package io.penstock.routing

import io.penstock.conf.{PolicyChoice, QuerySettings}

/** Decides which task runs which shards. Pure: equal arguments give equal answers. */
trait Binder {

  /**
   * Binds every shard to a task.
   *
   * @param load
   *   of each shard in this batch: its rows, weighted by what they are expected to cost
   * @param tasks
   *   N, at least 1
   * @param previous
   *   task of each shard in the batch before, which may have had more tasks; None where there was none
   * @return
   *   task of each shard, in `0 until tasks`
   */
  def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int]

  /** Busiest task over mean up to which it moves nothing. */
  def tolerated(load: Array[Long], tasks: Int): Double = 1.0
}

object Binder {

  /**
   * The binder that a query's settings name, for one region of one batch.
   *
   * @param deadBand
   *   imbalance for which nothing moves
   * @param planned
   *   task of each shard, where that was planned
   */
  def of(
      settings: QuerySettings,
      batch: Long,
      region: Long,
      deadBand: DeadBand,
      planned: => Option[Array[Int]]
  ): Binder =
    settings.policy match {
      case PolicyChoice.Hybrid => new StickyBinder(settings.theta, deadBand)
      case PolicyChoice.Static => StaticBinder
      case PolicyChoice.Planned(_) => new PlannedBinder(planned)
      case PolicyChoice.Chaos(seed) => new ChaosBinder(seed, batch, region)
    }
}

/** As planned before the batch; without a plan that fits, shards stay where they are, else by shard id. */
final class PlannedBinder(planned: Option[Array[Int]]) extends Binder {
  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] =
    (planned ++ previous).find(p => p.length == load.length && p.forall(t => t >= 0 && t < tasks))
      .fold(StaticBinder.bind(load, tasks, None))(_.clone())
}

/** By shard id, in runs of neighbours: the same binding whatever the load, and one block to fetch per map task. */
object StaticBinder extends Binder {
  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] =
    Array.tabulate(load.length)(s => (s.toLong * tasks / load.length).toInt)
}

/** At random, for tests: another binding in every batch and region, the same for the same seed. */
final class ChaosBinder(seed: Long, batch: Long, region: Long) extends Binder {
  override def bind(load: Array[Long], tasks: Int, previous: Option[Array[Int]]): Array[Int] = {
    val random = Chaos.random(seed, batch, region)
    Array.fill(load.length)(random.nextInt(tasks))
  }
}

private[routing] object Chaos {

  /** One stream of numbers per (seed, batch, region); neighbours are unlike each other. */
  def random(seed: Long, batch: Long, region: Long): java.util.SplittableRandom =
    new java.util.SplittableRandom(new java.util.SplittableRandom(seed * 31 + batch).nextLong() * 31 + region)
}
