package io.penstock.telemetry

/**
 * Decides whether the estimated costs of rows predict the costs of later batches. For each batch it compares two
 * predictions with the measured costs: the costs that were known before the batch, and the assumption that all rows
 * cost the same. Noise of shards whose cost is taken to be typical affects both predictions equally, and so cancels
 * out.
 *
 * There are two kinds of claims. The overall claim covers the costs of all shards: these must predict the loads of
 * shards better than rows alone do. Because noise on many shards can hide a better prediction, a shard with a cost far
 * above the typical one also has a claim of its own: its cost must be closer to the measured one in magnitude. A claim
 * holds once its accumulated advantage is large enough (as in Page's CUSUM test), and stops holding as soon as it is
 * refuted. After each refutation it needs twice the advantage to hold again. Not thread safe.
 */
final class CostTrust private (overall: CostTrust.Claim, byShard: Array[CostTrust.Claim]) {
  import CostTrust._

  def this(shards: Int) = this(new CostTrust.Claim(CostTrust.OverallDemand), Array.fill(shards)(null))

  /**
   * The costs that may be used; None if all rows must be assumed to cost the same.
   *
   * @param costs
   *   Estimated cost of a row of each shard, relative to the typical row; None if all are the same
   */
  def trusted(costs: Option[Array[Double]]): Option[Array[Double]] =
    if (overall.holds) costs
    else costs.map(c => Array.tabulate(c.length)(s => if (holds(s)) c(s) else 1.0)).filter(_.exists(_ != 1.0))

  private def holds(shard: Int): Boolean = byShard(shard) != null && byShard(shard).holds

  /**
   * The same claims for another layout.
   *
   * @param from
   *   For each shard of the new layout the shard of this one whose claim it takes over, or [[RowCosts.Unknown]]
   */
  def of(from: Array[Int]): CostTrust =
    new CostTrust(overall, from.map(f => if (f == RowCosts.Unknown) null else byShard(f)))

  /**
   * Compares costs with the measurements of a batch.
   *
   * @param costs
   *   Cost of a row of each shard as known before the batch, relative to the typical row; None if all are the same
   * @param rows
   *   Rows of each shard in the batch
   * @param batch
   *   Measured times of rows in the batch
   * @param tasks
   *   Number of tasks of the region
   */
  def score(costs: Option[Array[Double]], rows: Array[Long], batch: ShardSamples, tasks: Int): Unit = {
    val known = rows.indices.filter(s => rows(s) > 0L && batch.samples(s) > 0).toArray
    costs match {
      case Some(c) if known.nonEmpty =>
        nearer(c, rows, batch, known).foreach(n => overall.judge(n * tasks))
        val typicalNs = known.map(batch.rowNs(_)).sorted.apply(known.length / 2)
        if (typicalNs > 0.0) known.foreach(s => scoreShard(s, c(s), batch.rowNs(s) / typicalNs))
      case None =>
        // Without costs there is nothing to test, so every claim must be established again.
        overall.withdraw()
        byShard.foreach(claim => if (claim != null) claim.withdraw())
      case _ => ()
    }
  }

  private def scoreShard(shard: Int, cost: Double, measured: Double): Unit =
    if (cost >= Expensive) {
      if (byShard(shard) == null) byShard(shard) = new Claim(ShardDemand)
      byShard(shard).judge(nearerInMagnitude(cost, measured))
    } else if (byShard(shard) != null) byShard(shard).withdraw()
}

object CostTrust {

  /** Lowest relative cost for which a shard has a claim of its own. Noise alone seldom makes a cost so high. */
  private[telemetry] val Expensive = 4.0

  /**
   * Requirements that a claim must meet.
   *
   * @param drift
   *   Advantage per batch that is ignored, as the drift of a CUSUM test
   * @param enough
   *   Sum of the advantages above the drift from which the claim holds
   * @param batches
   *   Minimum number of batches that the claim must win
   * @param refuted
   *   Advantage, below 0, below which a single batch refutes the claim
   */
  final private case class Demand(drift: Double, enough: Double, batches: Int, refuted: Double)

  // Relative to the mean work of a task: a gain of one percent is hardly worth a move.
  private val OverallDemand = Demand(drift = 0.01, enough = 0.15, batches = 3, refuted = -0.2)
  // Relative to the predicted distance from the typical cost: 1 at most.
  private val ShardDemand = Demand(drift = 0.1, enough = 0.9, batches = 2, refuted = -0.5)

  /** How many times the requirements of a claim can double. */
  private val MaxDoublings = 4

  /** Weight of the newest batch in the mean advantage since a claim holds. */
  private val Weight = 0.3

  /** A claim that costs predict better. It must be established and holds until it is refuted. */
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
   * How much better costs predicted the measured loads of shards than rows alone, as a share of the total work.
   * Negative if rows alone predicted better; None if both predictions are the same.
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
        val (uniform, predicted, measured) = (work / allRows, work / byCost * costs(s), batch.rowNs(s))
        rows(s) * (math.abs(measured - uniform) - math.abs(measured - predicted))
      }.sum / work
    }
  }

  /**
   * The same for the magnitude of one cost: 1 if the measured cost is the predicted one or higher, -1 if it is typical.
   *
   * @param cost
   *   Predicted cost, above 1
   * @param measured
   *   Measured cost
   */
  private[telemetry] def nearerInMagnitude(cost: Double, measured: Double): Double = {
    val (predicted, magnitude) = (math.log(cost), math.max(0.0, math.log(measured)))
    (magnitude - math.abs(magnitude - predicted)) / predicted
  }
}
