package io.penstock.telemetry

/**
 * Share of a key in a batch.
 *
 * @param text
 *   The key in readable form
 * @param busyShare
 *   Share of the time, or None if time cannot be attributed to keys. The true share may be lower by `busyError`
 * @param rowsShare
 *   Share of the rows. The true share may be lower by `rowsError`
 */
final case class KeyShare(
    hash: Int,
    shard: Int,
    text: String,
    busyShare: Option[Double],
    busyError: Double,
    rowsShare: Double,
    rowsError: Double
) {

  /** The share that counts: that of the time if it is known, otherwise that of the rows. */
  def share: Double = busyShare.getOrElse(rowsShare)

  def error: Double = if (busyShare.isEmpty) rowsError else busyError

  /** Lower bound of the share. */
  def least: Double = math.max(0.0, share - error)
}

object HeavyKeys {

  /** Smallest share of a heavy key, however few other keys there are. */
  private val Least = 0.01

  /**
   * The keys whose share in a batch is at least one percent and larger than its error, heaviest first.
   *
   * @param keys
   *   Candidate keys of all tasks
   * @param busyNs
   *   Time that was attributed to rows; None if it does not represent what rows cost
   * @param rows
   *   Number of rows of the batch
   */
  def of(keys: Seq[KeyLoad], busyNs: Option[Long], rows: Long): Seq[KeyShare] = {
    val allRows = math.max(1L, rows).toDouble
    keys.map { k =>
      val busy = busyNs.map(all => math.max(1L, all).toDouble)
      KeyShare(
        k.hash,
        k.shard,
        k.text,
        busy.map(k.busyNs / _),
        busy.fold(0.0)(k.busyErrorNs / _),
        k.rows / allRows,
        k.rowsError / allRows
      )
    }.filter(k => k.share >= Least && k.share > k.error).sortBy(k => (-k.share, k.hash))
  }
}
