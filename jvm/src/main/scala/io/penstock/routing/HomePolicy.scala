package io.penstock.routing

import io.penstock.conf.{Mode, PolicyChoice, QuerySettings}

/** Says which executors tasks are on, and which each shard is to be on. Pure: equal arguments give equal answers. */
trait HomePolicy {

  /** Tasks on each executor; empty where they go by cores. */
  def tasks: Map[String, Int] = Map.empty

  /**
   * @param from
   *   for each shard of the batch, which one of the batch before has its keys
   * @param owner
   *   executor that has each shard, [[ExecutorSet.Unknown]] where none has
   * @return
   *   executor that each shard of the batch is to be on, [[ExecutorSet.Unknown]] where it stays where it is
   */
  def homes(from: Array[Int], owner: Array[Int], executors: ExecutorSet): Array[Int]
}

object HomePolicy {

  /**
   * The policy that a query's settings name, for one region of one batch; None where tasks are not divided among executors.
   *
   * @param planned
   *   where shards of the batch before are to go, where that was planned
   */
  def of(settings: QuerySettings, batch: Long, region: Long, planned: => Option[Homes]): Option[HomePolicy] =
    settings.policy match {
      case PolicyChoice.Hybrid => Some(new PlannedHomes(planned.filter(_ => settings.mode == Mode.On)))
      // In every other batch, so that shards also come to tasks that did not expect them.
      case PolicyChoice.Chaos(seed) if Chaos.random(seed ^ 1L, batch, region).nextInt(2) == 0 =>
        Some(new ChaosHomes(seed, batch, region))
      case _ => None
    }
}

/** As planned before the batch, as far as shards still are where the plan has them. */
final class PlannedHomes(planned: Option[Homes]) extends HomePolicy {
  override val tasks: Map[String, Int] = planned.fold(Map.empty[String, Int])(_.tasks)

  override def homes(from: Array[Int], owner: Array[Int], executors: ExecutorSet): Array[Int] =
    planned.filter(p => from.forall(_ < p.to.length)).fold(Array.fill(from.length)(ExecutorSet.Unknown)) { p =>
      from.zip(owner).map { case (s, now) =>
        if (executors.indexOf(p.from(s)) == now) executors.indexOf(p.to(s)) else ExecutorSet.Unknown
      }
    }
}

/** At random, for tests: others in every batch and region, the same for the same seed. */
final class ChaosHomes(seed: Long, batch: Long, region: Long) extends HomePolicy {
  override def homes(from: Array[Int], owner: Array[Int], executors: ExecutorSet): Array[Int] = {
    val random = Chaos.random(seed ^ 2L, batch, region)
    Array.fill(from.length)(random.nextInt(executors.size))
  }
}
