package io.penstock.routing

import io.penstock.conf.{Mode, PolicyChoice, QuerySettings}

/** Says which worker each shard is to be on. Pure: equal arguments give equal answers. */
trait HomePolicy {

  /**
   * @param from
   *   for each shard of the batch, which one of the batch before has its keys
   * @return
   *   worker of each shard of the batch, [[Workers.Unknown]] where that is gone; None where shards stay where they are
   */
  def homes(from: Array[Int], workers: Workers): Option[Array[Int]]
}

object HomePolicy {

  /**
   * The policy that a query's settings name, for one region of one batch; None where tasks are not divided among workers.
   *
   * @param planned
   *   executor of each shard of the batch before, as a task location, where that was planned
   */
  def of(settings: QuerySettings, batch: Long, region: Long, planned: => Option[Array[String]]): Option[HomePolicy] =
    settings.policy match {
      case PolicyChoice.Hybrid => Some(new PlannedHomes(planned.filter(_ => settings.mode == Mode.On)))
      // In every other batch, so that shards also come to tasks that did not expect them.
      case PolicyChoice.Chaos(seed) if Chaos.random(seed ^ 1L, batch, region).nextInt(2) == 0 =>
        Some(new ChaosHomes(seed, batch, region))
      case _ => None
    }
}

/** As planned before the batch. */
final class PlannedHomes(planned: Option[Array[String]]) extends HomePolicy {
  override def homes(from: Array[Int], workers: Workers): Option[Array[Int]] =
    planned.filter(p => from.forall(_ < p.length)).map(p => workers.of(from.map(p(_))))
}

/** At random, for tests: others in every batch and region, the same for the same seed. */
final class ChaosHomes(seed: Long, batch: Long, region: Long) extends HomePolicy {
  override def homes(from: Array[Int], workers: Workers): Option[Array[Int]] = {
    val random = Chaos.random(seed ^ 2L, batch, region)
    Some(Array.fill(from.length)(random.nextInt(workers.size)))
  }
}
