package io.penstock.telemetry

/**
 * Whether what rows of each shard seem to cost foretells what they will: batch by batch the costs that were known before are
 * held against what came, and against the plainer belief that all rows cost the same. What both beliefs have in common, and so
 * the noise of all shards that are thought typical, cancels out.
 *
 * Costs have two kinds of claims. All of them together have to make the loads of shards come nearer to what they were. Where
 * noise on many shards hides it, a shard that is thought far dearer than the typical one may count alone: its cost has to be
 * nearer in magnitude. A claim counts once its advantage has added up (as in Page's CUSUM test), and no longer as soon as it
 * loses; each time it does, it has to win twice as much the next time. For one thread.
 */
final class CostTrust private (ofAll: CostTrust.Claim, ofDear: Array[CostTrust.Claim]) {
  import CostTrust._

  def this(shards: Int) = this(new CostTrust.Claim(CostTrust.OfAll), Array.fill(shards)(null))

  /**
   * Those costs that count; None where rows are to be taken to cost the same.
   *
   * @param costs
   *   as they are known, relative to the typical row's
   */
  def trusted(costs: Option[Array[Double]]): Option[Array[Double]] =
    if (ofAll.holds) costs
    else costs.map(c => Array.tabulate(c.length)(s => if (holds(s)) c(s) else 1.0)).filter(_.exists(_ != 1.0))

  private def holds(shard: Int): Boolean = ofDear(shard) != null && ofDear(shard).holds

  /**
   * The same of other shards.
   *
   * @param from
   *   which of these each was, or [[RowCosts.Unknown]]
   */
  def of(from: Array[Int]): CostTrust =
    new CostTrust(ofAll, from.map(f => if (f == RowCosts.Unknown) null else ofDear(f)))

  /**
   * Holds costs against a batch.
   *
   * @param costs
   *   that were known before it, relative to the typical row's; None where all are thought the same
   * @param rows
   *   of each shard in the batch
   * @param batch
   *   what rows took in it
   * @param tasks
   *   N
   */
  def score(costs: Option[Array[Double]], rows: Array[Long], batch: ShardSamples, tasks: Int): Unit = {
    val known = rows.indices.filter(s => rows(s) > 0L && batch.samples(s) > 0).toArray
    costs match {
      case Some(c) if known.nonEmpty =>
        nearer(c, rows, batch, known).foreach(n => ofAll.judge(n * tasks))
        val typicalNs = known.map(batch.rowNs(_)).sorted.apply(known.length / 2)
        if (typicalNs > 0.0) known.foreach(s => scoreDear(s, c(s), batch.rowNs(s) / typicalNs))
      case None =>
        // What is not believed any more cannot be refuted; it has to be won anew.
        ofAll.withdraw()
        ofDear.foreach(claim => if (claim != null) claim.withdraw())
      case _ => ()
    }
  }

  private def scoreDear(shard: Int, cost: Double, came: Double): Unit =
    if (cost >= Dear) {
      if (ofDear(shard) == null) ofDear(shard) = new Claim(OfDear)
      ofDear(shard).judge(nearerInMagnitude(cost, came))
    } else if (ofDear(shard) != null) ofDear(shard).withdraw()
}

object CostTrust {

  /** A shard whose rows cost so many typical ones is far dearer than noise makes most. */
  private[telemetry] val Dear = 4.0

  /**
   * What is asked of a claim.
   *
   * @param drift
   *   advantage that counts for nothing
   * @param enough
   *   sum of what is beyond that, from which the claim holds
   * @param batches
   *   that it has to win at least
   * @param refuted
   *   advantage that is so far below 0 that one batch is enough
   */
  final private case class Demand(drift: Double, enough: Double, batches: Int, refuted: Double)

  // In parts of what a task does on average: a hundredth is hardly worth a move.
  private val OfAll = Demand(drift = 0.01, enough = 0.15, batches = 3, refuted = -0.2)
  // In parts of the whole way from the typical cost: 1 at most.
  private val OfDear = Demand(drift = 0.1, enough = 0.9, batches = 2, refuted = -0.5)

  /** How often what is asked of a claim doubles. */
  private val MaxDoublings = 4

  /** Of the newest batch in the mean of those since a claim holds. */
  private val Weight = 0.3

  /** What is claimed until it is refuted. */
  final private class Claim(demand: Demand) {
    private var sum = 0.0
    private var batches = 0
    private var doublings = 0
    private var mean = 0.0
    private var held = false

    def holds: Boolean = held

    def judge(advantage: Double): Unit =
      if (held) {
        mean += Weight * (advantage - mean)
        if (advantage < demand.refuted || mean < 0.0) {
          withdraw()
          doublings = math.min(doublings + 1, MaxDoublings)
        }
      } else {
        sum += advantage - demand.drift
        if (sum > 0.0 && advantage >= demand.refuted) batches += 1 else withdraw()
        mean = advantage
        held = batches >= (demand.batches << doublings) && sum >= demand.enough * (1 << doublings)
      }

    def withdraw(): Unit = {
      held = false
      sum = 0.0
      batches = 0
    }
  }

  /**
   * How much nearer to what came the loads of shards were that costs foretold than those by rows alone, as a part of all work;
   * below 0 where rows were nearer. None where both are the same.
   */
  private[telemetry] def nearer(
      costs: Array[Double],
      rows: Array[Long],
      batch: ShardSamples,
      known: Array[Int]
  ): Option[Double] = {
    val allRows = known.iterator.map(rows(_).toDouble).sum
    val byCost = known.iterator.map(s => rows(s) * costs(s)).sum
    val work = known.iterator.map(s => rows(s) * batch.rowNs(s)).sum
    Option.when(work > 0.0 && byCost > 0.0 && known.exists(costs(_) != costs(known.head))) {
      known.iterator.map { s =>
        val (plain, foretold, came) = (work / allRows, work / byCost * costs(s), batch.rowNs(s))
        rows(s) * (math.abs(came - plain) - math.abs(came - foretold))
      }.sum / work
    }
  }

  /**
   * The same of the magnitude of one cost: 1 where it came as foretold or dearer, -1 where the row was a typical one.
   *
   * @param cost
   *   that was foretold, above 1
   * @param came
   *   that came
   */
  private[telemetry] def nearerInMagnitude(cost: Double, came: Double): Double = {
    val (foretold, magnitude) = (math.log(cost), math.max(0.0, math.log(came)))
    (magnitude - math.abs(magnitude - foretold)) / foretold
  }
}
