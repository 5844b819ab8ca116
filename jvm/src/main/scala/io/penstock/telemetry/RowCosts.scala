package io.penstock.telemetry

/**
 * Learns what a row of each shard costs against the typical row, from batch to batch. A shard's own cost counts as far as it
 * can be told from noise: by a t statistic with the shard's own variance between batches, moderated by that of all shards
 * (Smyth 2004), its distance from the median is drawn in (James and Stein's positive part). A pause that hits a shard once
 * makes its variance as large as its distance, so it counts for nothing. Where all shards cost the same the answer is that,
 * so that noise moves nothing. For one thread.
 */
final class RowCosts(shardCount: Int) {
  // Sums over the batches in which a shard had rows; recent ones weigh more.
  private val rows = new Array[Double](shardCount)
  private val cost = new Array[Double](shardCount)
  private val squares = new Array[Double](shardCount)
  private val batches = new Array[Double](shardCount)

  /**
   * Learns from one batch.
   *
   * @param batchRows
   *   rows of each shard
   * @param batchBusyNs
   *   time of each shard
   */
  def learn(batchRows: Array[Long], batchBusyNs: Array[Long]): Unit = if (batchBusyNs.exists(_ > 0L)) {
    val unitNs = unit(batchRows, batchBusyNs)
    var s = 0
    while (s < shardCount) {
      val r = batchRows(s).toDouble
      if (r > 0.0) {
        val c = batchBusyNs(s) / unitNs
        if (rows(s) > 0.0) {
          val innovation = c / r - cost(s) / rows(s)
          squares(s) = RowCosts.Keep * squares(s) + innovation * innovation * r * rows(s) / (r + rows(s))
          batches(s) = RowCosts.Keep * batches(s) + 1
        }
        rows(s) = RowCosts.Keep * rows(s) + r
        cost(s) = RowCosts.Keep * cost(s) + c
      }
      s += 1
    }
  }

  /** What the typical row cost in a batch, in ns: how fast the machine was must not be taken for what shards cost. */
  private def unit(batchRows: Array[Long], batchBusyNs: Array[Long]): Double = {
    val ratios = Array.newBuilder[Double]
    var s = 0
    while (s < shardCount) {
      if (batchRows(s) > 0L && batchBusyNs(s) > 0L && cost(s) > 0.0)
        ratios += batchBusyNs(s) / (batchRows(s) * cost(s) / rows(s))
      s += 1
    }
    RowCosts.median(ratios.result()).getOrElse(batchBusyNs.sum.toDouble / math.max(1L, batchRows.sum))
  }

  /**
   * Cost of a row of each shard, relative to the typical row: that of the shard in the middle.
   *
   * @return
   *   None where no shard's rows can be told from another's
   */
  def relative: Option[Array[Double]] = {
    val typical = RowCosts.median((0 until shardCount).filter(rows(_) > 0.0).map(s => cost(s) / rows(s)).toArray)
    val known = (0 until shardCount).filter(s => batches(s) >= RowCosts.FewestBatches)
    val pooled = RowCosts.median(known.map(s => squares(s) / batches(s)).toArray)
    for {
      center <- typical if center > 0.0
      common <- pooled
      costs <- told(known, center, common)
    } yield costs
  }

  private def told(known: Seq[Int], center: Double, common: Double): Option[Array[Double]] = {
    val found = Array.fill(shardCount)(1.0)
    known.foreach { s =>
      val variance = (RowCosts.PriorBatches * common + squares(s)) / (RowCosts.PriorBatches + batches(s))
      val distance = cost(s) / rows(s) - center
      // Of t squared, so that no variance at all is no division by zero.
      val noise = RowCosts.Threshold * RowCosts.Threshold * variance / rows(s)
      val told = if (distance * distance <= noise) 0.0 else distance * (1.0 - noise / (distance * distance))
      if (math.abs(told) > RowCosts.LeastDistance * center) found(s) = 1.0 + told / center
    }
    Option.when(found.exists(_ != 1.0))(found)
  }
}

object RowCosts {

  /** What is left of a batch's weight when the next has come. */
  private val Keep = 0.9

  /** The variance of all shards counts as so many batches of a shard's own. */
  private val PriorBatches = 4.0

  /** Batches after a shard's first, by weight, before its variance is known. */
  private val FewestBatches = 1.8

  /** A distance of so many standard errors, or fewer, is noise. */
  private val Threshold = 2.5

  /** A smaller distance, over the median, is not worth a move. */
  private val LeastDistance = 0.05

  private def median(values: Array[Double]): Option[Double] = {
    java.util.Arrays.sort(values)
    Option.when(values.nonEmpty)(values(values.length / 2))
  }
}
