package io.penstock.telemetry

/**
 * Learns what a row of each shard costs against the typical row, from batch to batch. A shard's own cost counts as far as it
 * can be told from noise: by a t statistic with the shard's own variance between batches, moderated by that of all shards
 * (Smyth 2004), its distance from the median is drawn in (James and Stein's positive part). A pause that hits a shard once
 * makes its variance as large as its distance, so it counts for nothing. Above the median that is done by magnitude: what
 * costs a thousand typical rows in one batch and ten thousand in the next (the JIT compiler has come to the others' code) is
 * expensive beyond doubt, however it varies, and what hardly differs from noise is hardly dearer. Shards below the median
 * count as typical where all of them together save little: no balance could gain more than that, and the shards that tasks read
 * first seem cheap, because hash maps still fit into the caches. Where all shards cost the same the answer is that, so that noise
 * moves nothing; where shards differ as a rule, by far more than by noise, each is drawn in by the share of noise in that
 * (empirical Bayes: Efron and Morris 1973). For one thread.
 */
final class RowCosts(shardCount: Int) {
  // Sums over the batches in which rows of a shard were timed; recent ones weigh more.
  private val rows = new Array[Double](shardCount)
  private val batches = new Array[Double](shardCount)
  private val byCost = new Spread(identity)
  private val byMagnitude = new Spread(math.log1p)

  /** Mean and variance between batches of each shard's cost of a row, on a scale. */
  private class Spread(scale: Double => Double) {
    private val sums = new Array[Double](shardCount)
    private val squares = new Array[Double](shardCount)

    def copyFrom(other: RowCosts#Spread, from: Array[Int]): Unit =
      from.indices.filter(from(_) != RowCosts.Unknown).foreach { s =>
        sums(s) = other.sums(from(s))
        squares(s) = other.squares(from(s))
      }

    def mean(s: Int): Double = sums(s) / rows(s)

    /** To be called before `rows` has the batch's. */
    def learn(s: Int, batchRows: Double, rowCost: Double): Unit = {
      val value = scale(rowCost)
      if (rows(s) > 0.0) {
        val innovation = value - mean(s)
        squares(s) = RowCosts.Keep * squares(s) + innovation * innovation * batchRows * rows(s) / (batchRows + rows(s))
      }
      sums(s) = RowCosts.Keep * sums(s) + batchRows * value
    }

    def center: Double = RowCosts.median((0 until shardCount).filter(rows(_) > 0.0).map(mean).toArray).getOrElse(0.0)

    def drawnIn(known: Seq[Int], middle: Double): DrawnIn = {
      val common = RowCosts.median(known.map(s => squares(s) / batches(s)).toArray).getOrElse(0.0)
      new DrawnIn(
        middle,
        known,
        mean,
        s => (RowCosts.PriorBatches * common + squares(s)) / (RowCosts.PriorBatches + batches(s)) / rows(s)
      )
    }
  }

  /**
   * Shards' means, drawn in to the middle as far as their distance may be noise.
   *
   * @param noise
   *   variance of a shard's mean
   */
  final private class DrawnIn(middle: Double, known: Seq[Int], mean: Int => Double, noise: Int => Double) {

    /** Variance of the shards' true means where it is far beyond noise, otherwise 0: few shards differ, or none. */
    private val spread: Double = {
      val usual = RowCosts.median(known.map(noise).toArray).getOrElse(0.0)
      val deviation = RowCosts.median(known.map(s => math.abs(mean(s) - middle)).toArray).getOrElse(0.0)
      val total = math.pow(RowCosts.DeviationPerMedian * deviation, 2)
      if (known.size >= RowCosts.FewestForSpread && total > RowCosts.BeyondNoise * usual) total - usual else 0.0
    }

    /** Whether shards differ as a rule. */
    def differ: Boolean = spread > 0.0

    def apply(s: Int): Double = {
      val distance = mean(s) - middle
      // Of t squared, so that no variance at all is no division by zero.
      val doubtful = RowCosts.Threshold * RowCosts.Threshold * noise(s)
      val certain = if (distance * distance <= doubtful) 0.0 else 1.0 - doubtful / (distance * distance)
      val asARule = if (differ) spread / (spread + noise(s)) else 0.0
      middle + distance * math.max(certain, asARule)
    }
  }

  /** Learns from one batch. A shard's weight is how many of its rows were timed, not how many it had. */
  def learn(batch: ShardSamples): Unit = if (batch.samples.exists(_ > 0)) {
    val unitNs = unit(batch)
    var s = 0
    while (s < shardCount) {
      val r = batch.samples(s).toDouble
      if (r > 0.0) {
        val rowCost = batch.rowNs(s) / unitNs
        byCost.learn(s, r, rowCost)
        byMagnitude.learn(s, r, rowCost)
        if (rows(s) > 0.0) batches(s) = RowCosts.Keep * batches(s) + 1
        rows(s) = RowCosts.Keep * rows(s) + r
      }
      s += 1
    }
  }

  /** What the typical row cost in a batch, in ns: how fast the machine was must not be taken for what shards cost. */
  private def unit(batch: ShardSamples): Double = {
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
   * The same of other shards.
   *
   * @param from
   *   for each of them the shard whose rows cost what its rows will, or [[RowCosts.Unknown]]
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
   * Cost of a row of each shard, relative to the typical row: that of the shard in the middle.
   *
   * @return
   *   None where no shard's rows can be told from another's
   */
  def relative: Option[Array[Double]] = {
    val known = (0 until shardCount).filter(s => batches(s) >= RowCosts.FewestBatches)
    val (typical, typicalMagnitude) = (byCost.center, byMagnitude.center)
    Option.when(known.nonEmpty && typical > 0.0 && typicalMagnitude > 0.0)(found(known, typical, typicalMagnitude))
      .filter(_.exists(_ != 1.0))
  }

  private def found(known: Seq[Int], typical: Double, typicalMagnitude: Double): Array[Double] = {
    val (byCosts, byMagnitudes) = (byCost.drawnIn(known, typical), byMagnitude.drawnIn(known, typicalMagnitude))
    val costs = Array.fill(shardCount)(1.0)
    known.foreach { s =>
      val told =
        if (byCost.mean(s) < typical) byCosts(s) / typical
        else math.max(1.0, math.expm1(byMagnitudes(s)) / math.expm1(typicalMagnitude))
      if (byCosts.differ || math.abs(told - 1.0) > RowCosts.MinDistance) costs(s) = told
    }
    val saved = known.iterator.map(s => math.max(0.0, 1.0 - costs(s))).sum / known.size
    if (byCosts.differ || saved > RowCosts.MinDistance) costs else costs.map(math.max(1.0, _))
  }
}

object RowCosts {

  /** In place of a shard: nothing is known. */
  val Unknown: Int = -1

  /** What is left of a batch's weight when the next has come. */
  private val Keep = 0.9

  /** The variance of all shards counts as so many batches of a shard's own. */
  private val PriorBatches = 4.0

  /** Batches after a shard's first, by weight, before its variance is known. */
  private val FewestBatches = 1.8

  /** A distance of so many standard errors, or fewer, is noise. */
  private val Threshold = 2.5

  /** Shards that are known before their spread is. */
  private val FewestForSpread = 16

  /** Variance of means over that of noise from which shards differ as a rule. */
  private val BeyondNoise = 4.0

  /** Standard deviation of a normal distribution over its median absolute deviation. */
  private val DeviationPerMedian = 1.4826

  /**
   * A smaller distance from the median, over it, is not worth a move where shards do not differ as a rule; nor is what those
   * below it save of the whole.
   */
  private val MinDistance = 0.05

  private def median(values: Array[Double]): Option[Double] = {
    java.util.Arrays.sort(values)
    Option.when(values.nonEmpty)(values(values.length / 2))
  }
}
