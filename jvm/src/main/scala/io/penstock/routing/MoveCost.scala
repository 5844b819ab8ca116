package io.penstock.routing

/**
 * Cost of moving a shard's state from one executor to another.
 *
 * @param bytesPerMs
 *   transfer rate of state
 * @param moveMs
 *   fixed time for each shard
 */
final case class MoveCost(bytesPerMs: Double, moveMs: Double) {

  /** Time of a move in ms; 0 if there is no state. */
  def ms(stateBytes: Long): Double = if (stateBytes <= 0L) 0.0 else stateBytes / bytesPerMs + moveMs

  /**
   * Updates the transfer rate with the measurements of a batch, which get a weight of one quarter.
   *
   * @param bytes
   *   state that tasks fetched in the batch; a small amount is ignored
   * @param ms
   *   total time that tasks spent fetching it
   * @param shards
   *   number of shards that were fetched
   */
  def after(bytes: Long, ms: Double, shards: Int): MoveCost =
    if (bytes < MoveCost.MinMeasuredBytes) this
    else {
      val measured = math.max(0.0, ms - shards * moveMs) / bytes
      val msPerByte = (1.0 - MoveCost.BatchWeight) / bytesPerMs + MoveCost.BatchWeight * measured
      copy(bytesPerMs = math.min(math.max(1.0 / msPerByte, MoveCost.MinBytesPerMs), MoveCost.MaxBytesPerMs))
    }
}

object MoveCost {

  /**
   * Cost before anything has been measured: 100 MB/s, the rate of a 1 Gbit network, which is lower than the measured
   * rate of every transport between two processes.
   */
  val Usual: MoveCost = MoveCost(bytesPerMs = 100000.0, moveMs = 1.0)

  private val MinMeasuredBytes = 1L << 20
  private val BatchWeight = 0.25

  /** 1 MB/s. */
  private val MinBytesPerMs = 1e3

  /** 2 GB/s. */
  private val MaxBytesPerMs = 2e6

  /**
   * Cost without a transport: the task that needs a shard reads it from the checkpoint, which may be in a remote store.
   */
  val FromCheckpoint: MoveCost = MoveCost(bytesPerMs = 20000.0, moveMs = 20.0)
}
