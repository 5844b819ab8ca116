package io.penstock.routing

/**
 * Explicit requests of an application to pin and unpin keys of a region. They take precedence over the policy.
 *
 * @param pinned
 *   hashes that must be pinned
 * @param barred
 *   hashes that must not be pinned
 */
final case class PinOrders(pinned: Set[Int] = Set.empty, barred: Set[Int] = Set.empty) {
  def pin(hash: Int): PinOrders = PinOrders(pinned + hash, barred - hash)
  def unpin(hash: Int): PinOrders = PinOrders(pinned - hash, barred + hash)

  /**
   * The hashes to pin.
   *
   * @param chosen
   *   hashes that the policy chose
   * @param now
   *   hashes pinned in the previous batch; they have precedence over other chosen hashes
   * @param most
   *   largest number of pinned hashes
   */
  def over(chosen: Set[Int], now: Set[Int], most: Int): Set[Int] = {
    val own = pinned.toSeq.sorted.take(most)
    val others = (chosen -- barred -- own).toSeq.sortBy(h => (!now(h), h))
    (own ++ others.take(most - own.size)).toSet
  }
}
