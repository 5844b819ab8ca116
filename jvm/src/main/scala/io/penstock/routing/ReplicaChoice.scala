package io.penstock.routing

/** Which executor has a second copy of each shard, so that the end of the first costs no more than a batch. */
object ReplicaChoice {

  /**
   * Copies stay where they are as long as they can, and are spread over all executors but the shard's own.
   *
   * @param home
   *   executor of each shard, [[ExecutorSet.Unknown]] where it has none
   * @param replica
   *   executor that has a copy now, [[ExecutorSet.Unknown]] where none has
   * @param load
   *   of each shard, as the batch before had it
   * @param stateBytes
   *   size of each shard's state
   * @param maxBytes
   *   of state that is copied for the first time; the shards with most load come first, and one at least
   * @param executors
   *   their number
   * @return
   *   shards to be copied, or kept up, in the order in which they matter, each with its executor
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
      val (known, first) = wanted.partition(s => replica(s) == next(s))
      (known ++ ByteBudget.fitting(first, stateBytes, maxBytes)).map(s => s -> next(s))
    }
}
