package io.penstock.routing

/**
 * Decides how many tasks each executor has and where each shard should be. The result depends on the arguments only.
 */
trait HomePolicy {

  /** Number of tasks on each executor; empty to divide tasks in proportion to cores. */
  def tasks: Map[String, Int] = Map.empty

  /**
   * @param from
   *   for each shard of the batch, the shard of the previous batch that contained its keys
   * @param owner
   *   executor that holds each shard, [[ExecutorSet.Unknown]] if none does
   * @return
   *   executor on which each shard of the batch should be, [[ExecutorSet.Unknown]] if it should stay where it is
   */
  def homes(from: Array[Int], owner: Array[Int], executors: ExecutorSet): Array[Int]
}

/** Follows the plan made before the batch for all shards that are still where the plan assumes them. */
final class PlannedHomes(planned: Option[Homes]) extends HomePolicy {
  override val tasks: Map[String, Int] = planned.fold(Map.empty[String, Int])(_.tasks)

  override def homes(from: Array[Int], owner: Array[Int], executors: ExecutorSet): Array[Int] =
    planned.filter(p => from.forall(_ < p.to.length)).fold(Array.fill(from.length)(ExecutorSet.Unknown)) { p =>
      from.zip(owner).map { case (s, now) =>
        if (executors.indexOf(p.from(s)) == now) executors.indexOf(p.to(s)) else ExecutorSet.Unknown
      }
    }
}

/** Chooses executors at random, for tests. The choice depends on the seed, the batch and the region only. */
final class ChaosHomes(seed: Long, batch: Long, region: Long) extends HomePolicy {
  override def homes(from: Array[Int], owner: Array[Int], executors: ExecutorSet): Array[Int] = {
    val random = Chaos.random(seed ^ 2L, batch, region)
    Array.fill(from.length)(random.nextInt(executors.size))
  }
}
