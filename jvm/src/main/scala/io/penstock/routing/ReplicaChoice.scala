package io.penstock.routing

/** Which worker has a second copy of each shard, so that the end of the first costs no more than a batch. */
object ReplicaChoice {

  /**
   * Copies stay where they are as long as they can, and are spread over all workers but the shard's own.
   *
   * @param home
   *   worker of each shard, [[Workers.Unknown]] where it has none
   * @param replica
   *   worker that has a copy now, [[Workers.Unknown]] where none has
   * @param load
   *   of each shard, as the batch before had it
   * @param stateBytes
   *   size of each shard's state
   * @param mostBytes
   *   of state that is copied for the first time; the shards with most load come first, and one at least
   * @param workers
   *   their number
   * @return
   *   shards to be copied, or kept up, in the order in which they matter, each with its worker
   */
  def of(
      home: Array[Int],
      replica: Array[Int],
      load: Array[Long],
      stateBytes: Array[Long],
      mostBytes: Long,
      workers: Int
  ): Seq[(Int, Int)] =
    if (workers < 2) Nil
    else {
      def next(s: Int): Int =
        if (replica(s) != Workers.Unknown && replica(s) != home(s)) replica(s)
        else (home(s) + 1 + s % (workers - 1)) % workers
      val wanted =
        home.indices.filter(s => home(s) != Workers.Unknown && stateBytes(s) > 0L).sortBy(s => (-load(s), s))
      val (known, first) = wanted.partition(s => replica(s) == next(s))
      (known ++ ByteBudget.fitting(first, stateBytes, mostBytes)).map(s => s -> next(s))
    }
}
