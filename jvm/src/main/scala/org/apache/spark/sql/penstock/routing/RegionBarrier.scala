package org.apache.spark.sql.penstock.routing

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import io.penstock.routing.{Binder, Binding, Load}

/**
 * What was decided for a region in one batch.
 *
 * @param binding
 *   what the tasks run by
 * @param proposed
 *   what the binder chose; differs from `binding` where a query only observes
 * @param rows
 *   rows of each shard, over all inputs
 * @param load
 *   what they are expected to cost, in thousandths of a typical row's cost
 * @param previous
 *   task of each shard in the batch before; None where there was none
 * @param moved
 *   shards that change task against the batch before
 * @param tolerated
 *   busiest task over mean up to which the binder moves nothing
 * @param atNs
 *   when, by the JVM's clock
 * @param incomplete
 *   map tasks whose counts were missing: the balance may be off, the routing is not
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

  /** Rows of the busiest task over the mean, as proposed. */
  def imbalance: Double = imbalanceOf(rows, proposed.taskOf, proposed.tasks)

  /** Load of the busiest task over the mean, as proposed. */
  def expectedImbalance: Double = imbalanceOf(load, proposed.taskOf, proposed.tasks)

  /** The same, had the binding of the batch before stayed. */
  def imbalanceBefore: Option[Double] = previous.map(p => imbalanceOf(load, p, math.max(proposed.tasks, p.max + 1)))

  /** Share of the load that the heaviest shard has. */
  def heaviestShard: Double = load.max.toDouble / math.max(1L, load.sum)

  private def imbalanceOf(ofShards: Array[Long], taskOf: Array[Int], tasks: Int): Double =
    Load.imbalance(Load.ofTasks(ofShards, taskOf, tasks))
}

/**
 * Driver side of the barrier of one region in one batch: collects the counts of its exchanges, and decides once. A stage
 * that is retried, a second action on the same batch, and both inputs of a join all get the same binding.
 *
 * @param tasks
 *   N that is proposed
 * @param previous
 *   task of each shard in the batch before
 * @param costs
 *   of a row of each shard over the typical row's; None where rows are taken to cost the same
 * @param observe
 *   whether tasks run by shard, whatever is decided
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

  /** A shuffle of the region is about to run. Called when its exchange executes, since a plan may reuse one for two. */
  def register(shuffleId: Int, maps: Int, counts: ShardCounts): Unit =
    if (decided.isEmpty) inputs.put(shuffleId, Input(maps, counts))

  /** Whether a decision would see all counts, or was made. */
  def ready: Boolean =
    decided.isDefined || (!inputs.isEmpty && inputs.values.asScala.forall(i => i.counts.reported == i.maps))

  /** The same of a region whose shuffles, if it has any, are not Penstock's. */
  def readyOrUncounted: Boolean = ready || inputs.isEmpty

  def decision: Option[Decision] = decided

  /** Decides, at the first call. Must be called when the map stages are complete, on the scheduler's thread. */
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
      // The counts have served: a batch that is long done must not hold them.
      inputs.clear()
      decision
    }
  })
}
