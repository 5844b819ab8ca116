package io.penstock.routing

import io.penstock.conf.{QuerySettings, TasksChoice}

/** Decides how many tasks the stateful stages of a batch have. Pure. */
trait TaskCountPolicy {

  /**
   * @param batch
   *   the batch that is planned
   * @param region
   *   the region that is planned
   * @param cores
   *   tasks that the application can run at the same time now
   * @param shards
   *   S; more tasks than shards would have nothing to do
   * @param now
   *   N of the routing version in force, if there is one, unless it went by cores
   * @return
   *   N, from 1 to `shards`
   */
  def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int
}

object TaskCountPolicy {

  /**
   * The policy that a query's settings name.
   *
   * @param planned
   *   what the driver's planner says of a region
   */
  def of(settings: QuerySettings, planned: Long => Option[Int]): TaskCountPolicy = settings.tasks match {
    case TasksChoice.Cores => CoresPolicy
    case TasksChoice.Auto => new PlannedPolicy(planned)
    case TasksChoice.Fixed(count) => new FixedPolicy(count)
    case TasksChoice.Chaos(seed) => new ChaosPolicy(seed)
  }
}

/** One task per core, at most one per shard. */
object CoresPolicy extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    math.max(1, math.min(cores, shards))
}

/** As planned, at most one per core and per shard. Without a plan it stays as it is; one per core in the beginning. */
final class PlannedPolicy(planned: Long => Option[Int]) extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    CoresPolicy.tasks(batch, region, math.min(cores, planned(region).orElse(now).getOrElse(cores)), shards, now)
}

/** Always the same number, at most one per shard. */
final class FixedPolicy(count: Int) extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    math.min(count, shards)
}

/** Another number in every batch and region, for tests: 1 to 5, the same for the same seed. */
final class ChaosPolicy(seed: Long) extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    math.min(1 + Chaos.random(seed, batch, region).nextInt(ChaosPolicy.Most), shards)
}

object ChaosPolicy {
  val Most = 5
}
