package io.penstock.telemetry

/**
 * A key's part of a batch.
 *
 * @param busyShare
 *   of the time; None where time cannot be charged to keys. It may be less by `busyError`
 * @param rowsShare
 *   of the rows; it may be less by `rowsError`
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

  /** What the key is judged by: its part of the time, else of the rows. */
  def share: Double = busyShare.getOrElse(rowsShare)

  def error: Double = if (busyShare.isEmpty) rowsError else busyError

  /** What it has at least. */
  def least: Double = math.max(0.0, share - error)
}

object HeavyKeys {

  /** A key that has less is light, however few others there are. */
  private val Least = 0.01

  /**
   * Those keys of a batch that have a hundredth of it at least, and more than the error with which that is known, the heaviest
   * first.
   *
   * @param keys
   *   of all tasks
   * @param busyNs
   *   time that was booked to rows; None where that is not what rows cost
   * @param rows
   *   of the batch
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
