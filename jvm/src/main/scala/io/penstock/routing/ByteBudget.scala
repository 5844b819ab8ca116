package io.penstock.routing

/** What may be sent while a batch begins. */
private[routing] object ByteBudget {

  /**
   * As many shards as fit, the first ones, and one at least: a shard that is larger than what may be sent must not wait for
   * ever.
   *
   * @param inOrder
   *   shards, those that matter most first
   * @param stateBytes
   *   size of each shard's state
   */
  def fitting(inOrder: Seq[Int], stateBytes: Array[Long], maxBytes: Long): Seq[Int] = {
    val until = inOrder.scanLeft(0L)(_ + stateBytes(_)).tail.indexWhere(_ > maxBytes)
    if (until < 0) inOrder else inOrder.take(math.max(1, until))
  }
}
