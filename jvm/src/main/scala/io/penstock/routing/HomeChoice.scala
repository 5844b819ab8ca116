package io.penstock.routing

/**
 * Home executors of a region's shards in a batch.
 *
 * @param home
 *   home executor of each shard, [[ExecutorSet.Unknown]] if it has none
 * @param ahead
 *   shards to send to their new home before tasks need them, the most important ones first
 * @param waiting
 *   number of planned moves that are postponed because the batch's byte budget is used up
 */
final case class HomeChoice(home: Array[Int], ahead: Seq[Int], waiting: Int)

object HomeChoice {

  /**
   * Follows a plan as far as the byte budget of a batch allows. Shards with the most load move first, and at least one
   * moves.
   *
   * @param owner
   *   executor that holds each shard's state, [[ExecutorSet.Unknown]] if none does
   * @param wanted
   *   planned executor of each shard, [[ExecutorSet.Unknown]] if it stays where it is
   * @param load
   *   load of each shard in the previous batch
   * @param stateBytes
   *   size of each shard's state
   * @param maxBytes
   *   largest amount of state that may move between executors
   */
  def of(
      owner: Array[Int],
      wanted: Array[Int],
      load: Array[Long],
      stateBytes: Array[Long],
      maxBytes: Long
  ): HomeChoice = {
    val (homeless, moving) = owner.indices.filter(s => wanted(s) != ExecutorSet.Unknown && wanted(s) != owner(s))
      .partition(owner(_) == ExecutorSet.Unknown)
    val inOrder = moving.sortBy(s => (-load(s), s))
    val ahead = ByteBudget.fitting(inOrder, stateBytes, maxBytes)
    val home = owner.clone()
    (homeless ++ ahead).foreach(s => home(s) = wanted(s))
    HomeChoice(home, ahead, inOrder.size - ahead.size)
  }
}
