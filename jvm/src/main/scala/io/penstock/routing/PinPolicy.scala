package io.penstock.routing

/** Decides which hashes of keys are pinned, each to a shard of its own. The result depends on the arguments only. */
trait PinPolicy {

  /**
   * @param batch
   *   the batch that is planned
   * @param region
   *   the region that is planned
   * @param pinned
   *   hashes that are pinned now
   * @param sampled
   *   hashes of the keys that the tasks of the previous batch sampled most often
   * @return
   *   hashes to pin in the batch
   */
  def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int]
}

/** Pins the planned hashes; without a plan the pinned hashes stay as they are. */
final class PlannedPins(planned: Long => Option[Set[Int]], most: Int) extends PinPolicy {
  override def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int] =
    planned(region).getOrElse(pinned).toSeq.sorted.take(most).toSet
}

object NoPins extends PinPolicy {
  override def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int] = Set.empty
}

/**
 * Pins hashes at random, for tests: in three of four batches a random number of the sampled and the pinned hashes, in
 * the others the hashes that are pinned already.
 */
final class ChaosPins(seed: Long, most: Int) extends PinPolicy {
  override def pins(batch: Long, region: Long, pinned: Set[Int], sampled: Seq[Int]): Set[Int] = {
    val random = Chaos.random(seed, batch, region)
    // Drawn before anything that depends on the keys, because which keys are sampled differs between runs.
    val (keeps, count) = (random.nextInt(4) == 0, random.nextInt(most + 1))
    if (keeps) pinned.toSeq.sorted.take(most).toSet
    else (sampled ++ pinned).distinct.sorted.map(hash => (random.nextInt(), hash)).sorted.map(_._2).take(count).toSet
  }
}
