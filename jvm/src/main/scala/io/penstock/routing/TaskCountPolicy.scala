package io.penstock.routing

/** Decides how many tasks the stateful stages of a batch have. The result depends on the arguments only. */
trait TaskCountPolicy {

  /**
   * @param batch
   *   the batch that is planned
   * @param region
   *   the region that is planned
   * @param cores
   *   number of tasks that the application can run at once
   * @param shards
   *   number of base shards, an upper bound for the number of tasks
   * @param now
   *   number of tasks in the current routing version; None if there is none, or if it followed the number of cores
   * @return
   *   number of tasks, from 1 to `shards`
   */
  def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int
}

/** One task per core, at most one per shard. */
object CoresPolicy extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    math.max(1, math.min(cores, shards))
}

/**
 * The planned number of tasks, at most one per core and per shard. Without a plan the number stays as it is; at first
 * it is one per core.
 */
final class PlannedPolicy(planned: Long => Option[Int]) extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    CoresPolicy.tasks(batch, region, math.min(cores, planned(region).orElse(now).getOrElse(cores)), shards, now)
}

/** Always the same number, at most one per shard. */
final class FixedPolicy(count: Int) extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    math.min(count, shards)
}

/** A random number of tasks from 1 to 5, for tests. It depends on the seed, the batch and the region only. */
final class ChaosPolicy(seed: Long) extends TaskCountPolicy {
  override def tasks(batch: Long, region: Long, cores: Int, shards: Int, now: Option[Int]): Int =
    math.min(1 + Chaos.random(seed, batch, region).nextInt(ChaosPolicy.Most), shards)
}

object ChaosPolicy {
  val Most = 5
}
