package io.penstock.telemetry

/**
 * Times of a sample of rows, by shard: what a row of each shard took, from how many that is known, and how far rows of one
 * shard differ. For one thread.
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
   *   time of all rows that the reading stands for
   * @param stoodFor
   *   how many these are
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

  /** Time of a row of a shard; where none was sampled, that of all rows. */
  def rowNs(shard: Int): Double = if (count(shard) > 0) ns(shard) / rows(shard) else meanNs

  private def meanNs: Double = if (allRows > 0.0) allNs / allRows else 0.0

  /** Variance of the times of rows of one shard, over all shards; 0 where no shard has two readings. */
  def variance: Double = {
    val freedom = count.iterator.map(n => math.max(0, n - 1)).sum
    if (freedom > 0) squares.sum / freedom else 0.0
  }
}

object SampledTimes {

  /**
   * What a row took in several steps, which were timed apart.
   *
   * @param steps
   *   times of the rows of one task
   */
  def rowNs(steps: Iterable[SampledTimes], shard: Int): Double = steps.iterator.map(_.rowNs(shard)).sum

  def samples(steps: Iterable[SampledTimes], shard: Int): Int = steps.iterator.map(_.samples(shard)).sum

  /** Standard deviation of the time of rows of one shard. */
  def deviationNs(steps: Iterable[SampledTimes]): Double = math.sqrt(steps.iterator.map(_.variance).sum)
}
