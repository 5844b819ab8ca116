package io.penstock.routing

/**
 * Where the shards of a region are in a batch.
 *
 * @param home
 *   executor of each shard, [[ExecutorSet.Unknown]] where it has none
 * @param ahead
 *   shards that are to come to their home before tasks want them, those that matter most first
 * @param waiting
 *   shards that are to go by plan, and stay for a batch because others fill its bytes
 */
final case class HomeChoice(home: Array[Int], ahead: Seq[Int], waiting: Int)

object HomeChoice {

  /**
   * Follows a plan as far as a batch's bytes allow: the shards with most load first, and one at least.
   *
   * @param owner
   *   executor that has each shard's state, [[ExecutorSet.Unknown]] where none has
   * @param wanted
   *   executor that it is to be on, [[ExecutorSet.Unknown]] where it stays
   * @param load
   *   of each shard, as the batch before had it
   * @param stateBytes
   *   size of each shard's state
   * @param maxBytes
   *   of state that goes from executor to executor
   */
  def of(
      owner: Array[Int],
      wanted: Array[Int],
      load: Array[Long],
      stateBytes: Array[Long],
      maxBytes: Long
  ): HomeChoice = {
    val (begin, go) = owner.indices.filter(s => wanted(s) != ExecutorSet.Unknown && wanted(s) != owner(s))
      .partition(owner(_) == ExecutorSet.Unknown)
    val inOrder = go.sortBy(s => (-load(s), s))
    val ahead = ByteBudget.fitting(inOrder, stateBytes, maxBytes)
    val home = owner.clone()
    (begin ++ ahead).foreach(s => home(s) = wanted(s))
    HomeChoice(home, ahead, inOrder.size - ahead.size)
  }
}
