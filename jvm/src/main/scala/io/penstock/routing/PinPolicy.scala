package io.penstock.routing

import io.penstock.conf.{PolicyChoice, QuerySettings}

/** Decides which hashes of keys are pinned, each to a shard of its own. Pure. */
trait PinPolicy {

  /**
   * @param batch
   *   the batch that is planned
   * @param region
   *   the region that is planned
   * @param pinned
   *   hashes that are pinned now
   * @param sampled
   *   hashes of the keys that tasks of the batch before have sampled most of
   * @return
   *   hashes that are to be pinned in the batch
   */
  def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int]
}

object PinPolicy {

  /**
   * The policy that a query's settings name.
   *
   * @param planned
   *   what the driver's planner says of a region
   */
  def of(settings: QuerySettings, planned: Long => Option[Set[Int]]): PinPolicy = settings.policy match {
    case PolicyChoice.Hybrid => new PlannedPins(planned, settings.pinnedMax)
    case PolicyChoice.Chaos(seed) => new ChaosPins(seed, settings.pinnedMax)
    case _ => NoPins
  }
}

/** As planned; as they are where there is no plan. */
final class PlannedPins(planned: Long => Option[Set[Int]], most: Int) extends PinPolicy {
  override def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int] =
    planned(region).getOrElse(pinned).toSeq.sorted.take(most).toSet
}

object NoPins extends PinPolicy {
  override def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int] = Set.empty
}

/** At random, for tests: in most batches others of the sampled keys and of those that are pinned, as many as it may or fewer. */
final class ChaosPins(seed: Long, most: Int) extends PinPolicy {
  override def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int] = {
    val random = Chaos.random(seed, batch, region)
    // Drawn before what depends on the keys: which of them are sampled is another with each run, how many are pinned is not.
    val (keeps, count) = (random.nextInt(4) == 0, random.nextInt(most + 1))
    if (keeps) pinned.toSeq.sorted.take(most).toSet
    else (sampled ++ pinned).distinct.sorted.map(hash => (random.nextInt(), hash)).sorted.map(_._2).take(count).toSet
  }
}
