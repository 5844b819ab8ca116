package io.penstock.routing

/**
 * What an application has said of keys of a region, by their hashes. It stands above what a policy chooses.
 *
 * @param pinned
 *   are pinned
 * @param barred
 *   are not
 */
final case class PinOrders(pinned: Set[Int] = Set.empty, barred: Set[Int] = Set.empty) {
  def pin(hash: Int): PinOrders = PinOrders(pinned + hash, barred - hash)
  def unpin(hash: Int): PinOrders = PinOrders(pinned - hash, barred + hash)

  /**
   * The hashes that are pinned.
   *
   * @param chosen
   *   by the policy
   * @param now
   *   pinned in the batch before: of those that are chosen, these stay first
   * @param most
   *   how many there may be
   */
  def over(chosen: Set[Int], now: Set[Int], most: Int): Set[Int] = {
    val own = pinned.toSeq.sorted.take(most)
    val others = (chosen -- barred -- own).toSeq.sortBy(h => (!now(h), h))
    (own ++ others.take(most - own.size)).toSet
  }
}
