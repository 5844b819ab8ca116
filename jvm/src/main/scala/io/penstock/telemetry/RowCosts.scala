package io.penstock.telemetry

/**
 * Learns the cost of a row of each shard, relative to the typical row, from batch to batch.
 *
 * A shard's own cost counts to the extent that it differs from noise. Its distance from the median is tested by a t
 * statistic and shrunk accordingly (James and Stein's positive part). The variance in the statistic is that of the
 * shard between batches, moderated by that of all shards (Smyth 2004). A pause that hits a shard once makes its
 * variance as large as its distance, and therefore has no effect.
 *
 * Above the median, costs are tested and shrunk on a logarithmic scale. A shard that costs a thousand typical rows in
 * one batch and ten thousand in the next (for example after the JIT compiler has compiled the code for the other
 * shards) is then found expensive although it varies, and a shard that hardly differs from noise is hardly more
 * expensive.
 *
 * Shards below the median count as typical if all of them together save little: no balance could gain more than that,
 * and the shards that tasks read first seem cheap because hash maps still fit into the caches.
 *
 * If all shards cost the same, so do the results, and noise moves no shard. If shards differ generally, by far more
 * than noise, each is shrunk by the share of noise in the total variance (empirical Bayes: Efron and Morris 1973). Not
 * thread safe.
 */
final class RowCosts(shardCount: Int) {
  // Sums over the batches in which rows of a shard were timed. Recent batches have a larger weight.
  private val rows = new Array[Double](shardCount)
  private val batches = new Array[Double](shardCount)
  private val byCost = new Spread(identity)
  private val byMagnitude = new Spread(math.log1p)

  /** Result of [[relative]], which a batch needs twice; None if it must be computed. */
  private var newest = Option.empty[Option[Array[Double]]]

  /** Mean and variance, between batches, of each shard's cost of a row, on the given scale. */
  private class Spread(scale: Double => Double) {
    private val sums = new Array[Double](shardCount)
    private val squares = new Array[Double](shardCount)

    def copyFrom(other: RowCosts#Spread, from: Array[Int]): Unit =
      from.indices.filter(from(_) != RowCosts.Unknown).foreach { s =>
        sums(s) = other.sums(from(s))
        squares(s) = other.squares(from(s))
      }

    def mean(s: Int): Double = sums(s) / rows(s)

    /** Adds a batch. Must be called before the rows of the batch are added to `rows`. */
    def learn(s: Int, batchRows: Double, rowCost: Double): Unit = {
      val value = scale(rowCost)
      if (rows(s) > 0.0) {
        val innovation = value - mean(s)
        squares(s) = RowCosts.Keep * squares(s) + innovation * innovation * batchRows * rows(s) / (batchRows + rows(s))
      }
      sums(s) = RowCosts.Keep * sums(s) + batchRows * value
    }

    def center: Double = RowCosts.median((0 until shardCount).filter(rows(_) > 0.0).map(mean).toArray).getOrElse(0.0)

    def shrunk(known: Seq[Int], middle: Double): ShrunkMeans = {
      val common = RowCosts.median(known.map(s => squares(s) / batches(s)).toArray).getOrElse(0.0)
      new ShrunkMeans(
        middle,
        known,
        mean,
        s => (RowCosts.PriorBatches * common + squares(s)) / (RowCosts.PriorBatches + batches(s)) / rows(s)
      )
    }
  }

  /**
   * Means of shards, shrunk towards the middle to the extent that their distance may be noise.
   *
   * @param middle
   *   Value towards which means are shrunk
   * @param noise
   *   Variance of a shard's mean
   */
  final private class ShrunkMeans(middle: Double, known: Seq[Int], mean: Int => Double, noise: Int => Double) {

    /** Variance of the shards' true means if it is far larger than noise; 0 if few shards differ, or none. */
    private val spread: Double = {
      val usual = RowCosts.median(known.map(noise).toArray).getOrElse(0.0)
      val deviation = RowCosts.median(known.map(s => math.abs(mean(s) - middle)).toArray).getOrElse(0.0)
      val total = math.pow(RowCosts.DeviationPerMedian * deviation, 2)
      if (known.size >= RowCosts.FewestForSpread && total > RowCosts.BeyondNoise * usual) total - usual else 0.0
    }

    /** Whether shards differ generally, and not just a few of them. */
    def differ: Boolean = spread > 0.0

    def apply(s: Int): Double = {
      val distance = mean(s) - middle
      // Squares are compared instead of t values, which would be a division by zero if there is no variance.
      val threshold = RowCosts.Threshold * RowCosts.Threshold * noise(s)
      val certain = if (distance * distance <= threshold) 0.0 else 1.0 - threshold / (distance * distance)
      val general = if (differ) spread / (spread + noise(s)) else 0.0
      middle + distance * math.max(certain, general)
    }
  }

  /** Learns from one batch. The weight of a shard is the number of its timed rows, not of all its rows. */
  def learn(batch: ShardSamples): Unit = if (batch.samples.exists(_ > 0)) {
    newest = None
    val typicalNs = typicalRowNs(batch)
    var s = 0
    while (s < shardCount) {
      val r = batch.samples(s).toDouble
      if (r > 0.0) {
        val rowCost = batch.rowNs(s) / typicalNs
        byCost.learn(s, r, rowCost)
        byMagnitude.learn(s, r, rowCost)
        if (rows(s) > 0.0) batches(s) = RowCosts.Keep * batches(s) + 1
        rows(s) = RowCosts.Keep * rows(s) + r
      }
      s += 1
    }
  }

  /** Time of the typical row in a batch. Dividing by it separates the costs of shards from the speed of the machine. */
  private def typicalRowNs(batch: ShardSamples): Double = {
    val ratios = Array.newBuilder[Double]
    var (ns, all) = (0.0, 0L)
    var s = 0
    while (s < shardCount) {
      if (batch.samples(s) > 0) {
        ns += batch.samples(s) * batch.rowNs(s)
        all += batch.samples(s)
        if (batch.rowNs(s) > 0.0 && rows(s) > 0.0 && byCost.mean(s) > 0.0) ratios += batch.rowNs(s) / byCost.mean(s)
      }
      s += 1
    }
    math.max(RowCosts.median(ratios.result()).getOrElse(ns / all), Double.MinPositiveValue)
  }

  /**
   * The same costs for another layout.
   *
   * @param from
   *   For each shard of the new layout the shard of this one whose cost it takes over, or [[RowCosts.Unknown]]
   */
  def of(from: Array[Int]): RowCosts = {
    val out = new RowCosts(from.length)
    from.indices.filter(from(_) != RowCosts.Unknown).foreach { s =>
      out.rows(s) = rows(from(s))
      out.batches(s) = batches(from(s))
    }
    out.byCost.copyFrom(byCost, from)
    out.byMagnitude.copyFrom(byMagnitude, from)
    out
  }

  /**
   * Cost of a row of each shard, relative to the typical row, which is that of the median shard.
   *
   * @return
   *   Relative costs, or None if the rows of all shards cost the same
   */
  def relative: Option[Array[Double]] = {
    val costs = newest.getOrElse(computed)
    newest = Some(costs)
    costs.map(_.clone())
  }

  private def computed: Option[Array[Double]] = {
    val known = (0 until shardCount).filter(s => batches(s) >= RowCosts.FewestBatches)
    val (typical, typicalMagnitude) = (byCost.center, byMagnitude.center)
    Option.when(known.nonEmpty && typical > 0.0 && typicalMagnitude > 0.0)(costsOf(known, typical, typicalMagnitude))
      .filter(_.exists(_ != 1.0))
  }

  private def costsOf(known: Seq[Int], typical: Double, typicalMagnitude: Double): Array[Double] = {
    val (byCosts, byMagnitudes) = (byCost.shrunk(known, typical), byMagnitude.shrunk(known, typicalMagnitude))
    val costs = Array.fill(shardCount)(1.0)
    known.foreach { s =>
      val cost =
        if (byCost.mean(s) < typical) byCosts(s) / typical
        else math.max(1.0, math.expm1(byMagnitudes(s)) / math.expm1(typicalMagnitude))
      if (byCosts.differ || math.abs(cost - 1.0) > RowCosts.MinDistance) costs(s) = cost
    }
    val saved = known.iterator.map(s => math.max(0.0, 1.0 - costs(s))).sum / known.size
    if (byCosts.differ || saved > RowCosts.MinDistance) costs else costs.map(math.max(1.0, _))
  }
}

object RowCosts {

  /** Stands for a shard of which nothing is known. */
  val Unknown: Int = -1

  /** Factor by which the weight of earlier batches decreases with each batch. */
  private val Keep = 0.9

  /** Weight of the variance of all shards, in batches of a shard's own variance. */
  private val PriorBatches = 4.0

  /** Weighted number of batches after a shard's first from which its variance counts as known. */
  private val FewestBatches = 1.8

  /** Largest distance, in standard errors, that is taken for noise. */
  private val Threshold = 2.5

  /** Number of known shards from which their spread can be estimated. */
  private val FewestForSpread = 16

  /** Ratio of the variance of means to that of noise above which shards differ generally. */
  private val BeyondNoise = 4.0

  /** Ratio of the standard deviation of a normal distribution to its median absolute deviation. */
  private val DeviationPerMedian = 1.4826

  /**
   * Smallest relative distance from the median that is worth a move if shards do not differ generally. It is also the
   * smallest share of the total that the shards below the median must save together.
   */
  private val MinDistance = 0.05

  private def median(values: Array[Double]): Option[Double] = {
    java.util.Arrays.sort(values)
    Option.when(values.nonEmpty)(values(values.length / 2))
  }
}
