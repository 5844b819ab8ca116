package io.penstock.routing

/**
 * Chooses the executor for the replica of each shard. With a replica, the loss of an executor costs at most one batch.
 */
object ReplicaChoice {

  /**
   * Keeps replicas where they are if possible, and spreads new ones over all executors except the shard's home
   * executor.
   *
   * @param home
   *   home executor of each shard, [[ExecutorSet.Unknown]] if it has none
   * @param replica
   *   executor that holds a replica of each shard, [[ExecutorSet.Unknown]] if none does
   * @param load
   *   load of each shard in the previous batch
   * @param stateBytes
   *   size of each shard's state
   * @param maxBytes
   *   largest amount of state for which new replicas are made; shards with the most load come first, and at least one
   *   new replica is made
   * @param executors
   *   number of executors
   * @return
   *   shards whose replica is to be made or updated, the most important ones first, each with the executor of the
   *   replica
   */
  def of(
      home: Array[Int],
      replica: Array[Int],
      load: Array[Long],
      stateBytes: Array[Long],
      maxBytes: Long,
      executors: Int
  ): Seq[(Int, Int)] =
    if (executors < 2) Nil
    else {
      def next(s: Int): Int =
        if (replica(s) != ExecutorSet.Unknown && replica(s) != home(s)) replica(s)
        else (home(s) + 1 + s % (executors - 1)) % executors
      val wanted =
        home.indices.filter(s => home(s) != ExecutorSet.Unknown && stateBytes(s) > 0L).sortBy(s => (-load(s), s))
      val (existing, missing) = wanted.partition(s => replica(s) == next(s))
      (existing ++ ByteBudget.fitting(missing, stateBytes, maxBytes)).map(s => s -> next(s))
    }
}
