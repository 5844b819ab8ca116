package org.apache.spark.sql.penstock.routing

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import io.penstock.routing.{Binder, Binding, Load}

/**
 * The decision for a region in one batch.
 *
 * @param binding
 *   Binding that the tasks use
 * @param proposed
 *   Binding that the binder chose; it differs from `binding` if the query only observes
 * @param rows
 *   Rows of each shard, over all inputs
 * @param load
 *   Expected cost of each shard's rows, in thousandths of a typical row's cost
 * @param previous
 *   Task of each shard in the batch before; None if there was none
 * @param moved
 *   Number of shards that change their task against the batch before
 * @param tolerated
 *   Imbalance up to which the binder moves nothing
 * @param micros
 *   Duration of the decision, in microseconds
 * @param atNs
 *   Time of the decision, by `System.nanoTime`
 * @param incomplete
 *   Number of map tasks whose counts were missing. The binding may then be unbalanced, but rows still reach the right
 *   tasks
 */
final case class Decision(
    binding: Binding,
    proposed: Binding,
    rows: Array[Long],
    load: Array[Long],
    previous: Option[Array[Int]],
    moved: Int,
    tolerated: Double,
    micros: Long,
    atNs: Long,
    incomplete: Int
) {

  /** Rows of the busiest task over the mean, under the proposed binding. */
  def imbalance: Double = imbalanceOf(rows, proposed.taskOf, proposed.tasks)

  /** Load of the busiest task over the mean, under the proposed binding. */
  def expectedImbalance: Double = imbalanceOf(load, proposed.taskOf, proposed.tasks)

  /** Load of the busiest task over the mean that this batch would have had under the binding of the batch before. */
  def imbalanceBefore: Option[Double] = previous.map(p => imbalanceOf(load, p, math.max(proposed.tasks, p.max + 1)))

  /** Share of the load that belongs to the heaviest shard. */
  def heaviestShard: Double = load.max.toDouble / math.max(1L, load.sum)

  private def imbalanceOf(loadOfShards: Array[Long], taskOf: Array[Int], tasks: Int): Double =
    Load.imbalance(Load.ofTasks(loadOfShards, taskOf, tasks))
}

/**
 * Driver side of the barrier of one region in one batch. It collects the row counts of the region's exchanges and
 * decides the binding once. A retried stage, a second action on the same batch, and both inputs of a join all get the
 * same binding.
 *
 * @param shards
 *   Number of shards
 * @param tasks
 *   Number of tasks of the proposed binding
 * @param binder
 *   Proposes the binding
 * @param previous
 *   Task of each shard in the batch before; None if there was none
 * @param costs
 *   Cost of a row of each shard over that of the typical row; None if all rows are taken to cost the same
 * @param observe
 *   Whether task p runs shard p, whatever binding is proposed
 */
final class RegionBarrier(
    shards: Int,
    tasks: Int,
    binder: Binder,
    previous: Option[Array[Int]],
    costs: Option[Array[Double]],
    observe: Boolean
) {
  private case class Input(maps: Int, counts: ShardCounts)

  private val inputs = new ConcurrentHashMap[Int, Input]()
  @volatile private var decided: Option[Decision] = None

  /**
   * Registers a shuffle of the region that is about to run. Called when its exchange executes, because a plan may use
   * one exchange twice.
   */
  def register(shuffleId: Int, maps: Int, counts: ShardCounts): Unit =
    if (decided.isEmpty) inputs.put(shuffleId, Input(maps, counts))

  /** Whether a decision was made, or all counts are known. */
  def ready: Boolean =
    decided.isDefined || (!inputs.isEmpty && inputs.values.asScala.forall(i => i.counts.reported == i.maps))

  /** Like [[ready]], and also true for a region that has no routed exchanges. */
  def readyOrUncounted: Boolean = ready || inputs.isEmpty

  def decision: Option[Decision] = decided

  /** Decides at the first call. Must be called on the scheduler's thread when the map stages are complete. */
  def decide(): Decision = decided.getOrElse(synchronized {
    decided.getOrElse {
      val start = System.nanoTime()
      val rows = new Array[Long](shards)
      inputs.values.asScala.foreach(_.counts.addTo(rows))
      val missing = inputs.values.asScala.map(i => math.max(0, i.maps - i.counts.reported)).sum
      val load = Load.expected(rows, costs)
      val proposed = new Binding(tasks, binder.bind(load, tasks, previous))
      val moved = previous.fold(0)(p => Load.moved(Some(p), proposed.taskOf))
      val micros = (System.nanoTime() - start) / 1000
      val binding = if (observe) Binding.identity(shards) else proposed
      val decision =
        Decision(binding, proposed, rows, load, previous, moved, binder.tolerated(load, tasks), micros, start, missing)
      decided = Some(decision)
      // The counts are not needed any more. Free them, because the batch may stay referenced for long.
      inputs.clear()
      decision
    }
  })
}
