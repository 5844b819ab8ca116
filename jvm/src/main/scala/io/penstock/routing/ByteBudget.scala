package io.penstock.routing

/** Limits the amount of state that is sent at the start of a batch. */
private[routing] object ByteBudget {

  /**
   * The first shards that fit into the budget together, but at least one, so that a shard larger than the budget does
   * not wait forever.
   *
   * @param inOrder
   *   shards, the most important ones first
   * @param stateBytes
   *   size of each shard's state
   * @param maxBytes
   *   the budget
   */
  def fitting(inOrder: Seq[Int], stateBytes: Array[Long], maxBytes: Long): Seq[Int] = {
    val until = inOrder.scanLeft(0L)(_ + stateBytes(_)).tail.indexWhere(_ > maxBytes)
    if (until < 0) inOrder else inOrder.take(math.max(1, until))
  }
}
