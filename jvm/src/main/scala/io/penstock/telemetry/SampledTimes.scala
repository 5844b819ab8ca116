package io.penstock.telemetry

/**
 * Times of a sample of rows, by shard: the mean time of a row of each shard, the number of readings, and the variance
 * of rows of the same shard. Not thread safe.
 */
final class SampledTimes(shardCount: Int) {
  private val ns = new Array[Double](shardCount)
  private val rows = new Array[Double](shardCount)
  private val count = new Array[Int](shardCount)
  private val squares = new Array[Double](shardCount)
  private var allNs = 0.0
  private var allRows = 0.0

  /**
   * Adds one reading.
   *
   * @param bookedNs
   *   Time of all rows for which the reading stands
   * @param stoodFor
   *   Number of rows for which the reading stands
   */
  def add(shard: Int, bookedNs: Long, stoodFor: Long): Unit = if (stoodFor > 0L) {
    val rowNs = bookedNs.toDouble / stoodFor
    val before = if (count(shard) > 0) ns(shard) / rows(shard) else rowNs
    ns(shard) += bookedNs
    rows(shard) += stoodFor
    allNs += bookedNs
    allRows += stoodFor
    count(shard) += 1
    squares(shard) += (rowNs - before) * (rowNs - ns(shard) / rows(shard))
  }

  def samples(shard: Int): Int = count(shard)

  /** Mean time of a row of a shard, or of all rows if no row of the shard was sampled. */
  def rowNs(shard: Int): Double = if (count(shard) > 0) ns(shard) / rows(shard) else meanNs

  private def meanNs: Double = if (allRows > 0.0) allNs / allRows else 0.0

  /** Variance of the times of rows of the same shard, pooled over all shards; 0 if no shard has two readings. */
  def variance: Double = {
    val freedom = count.iterator.map(n => math.max(0, n - 1)).sum
    if (freedom > 0) squares.sum / freedom else 0.0
  }
}

object SampledTimes {

  /**
   * Time of a row over several steps that were timed separately.
   *
   * @param steps
   *   Times of the rows of one task, for each step
   */
  def rowNs(steps: Iterable[SampledTimes], shard: Int): Double = steps.iterator.map(_.rowNs(shard)).sum

  def samples(steps: Iterable[SampledTimes], shard: Int): Int = steps.iterator.map(_.samples(shard)).sum

  /** Standard deviation of the time of rows of the same shard. */
  def deviationNs(steps: Iterable[SampledTimes]): Double = math.sqrt(steps.iterator.map(_.variance).sum)
}
