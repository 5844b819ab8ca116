package org.apache.spark.sql.penstock.routing

import io.penstock.routing._
import io.penstock.sharding.Layout

/**
 * How the tasks and the shards of a region are divided among executors in one batch.
 *
 * @param choice
 *   where its shards are
 * @param before
 *   the binding of the batch before in terms of `shares`: task of each shard, -1 where that says nothing
 * @param msPerLoad
 *   what a unit of load took in the batch before; 0 where that is not known
 * @param stateBytes
 *   of each shard
 */
final private[routing] class RegionWorkers private (
    val workers: Workers,
    shares: TaskShares,
    choice: HomeChoice,
    before: Array[Int],
    msPerLoad: Double,
    stateBytes: Array[Long]
) {

  /** Executor that each task is meant for. */
  val executorOf: IndexedSeq[String] = (0 until shares.tasks).map(t => workers.executors(shares.workerOf(t)))

  /** Shards that are to come before tasks want them, in the order in which they matter, each with its executor. */
  def ahead: Seq[(Int, String)] = choice.ahead.map(s => s -> workers.executors(choice.home(s)))

  /** How many of those that are to go stay for a batch. */
  def waiting: Int = choice.waiting

  def binder(theta: Double): Binder = new TieredBinder(theta, shares, choice.home, stateBytes.map(moveCost), before)

  /** In units of load. Where it is not known what these take, nothing goes that has state. */
  private def moveCost(stateBytes: Long): Double =
    if (stateBytes <= 0L) 0.0
    else if (msPerLoad <= 0.0) Double.PositiveInfinity
    else MoveCost.Usual.ms(stateBytes) / msPerLoad
}

private[routing] object RegionWorkers {

  /**
   * None where executors do not matter: there is one, or more than tasks.
   *
   * @param known
   *   of the region by the end of the batch before, in the terms of that batch's layout
   * @param owners
   *   executor that has each of that layout's shards, as a task location; null, or no entry, where unknown
   * @param policy
   *   where shards are to be
   * @param mostBytes
   *   of state that goes by plan
   */
  def of(
      workers: Workers,
      tasks: Int,
      layout: Layout,
      known: Option[KnownRegion],
      owners: Array[String],
      policy: HomePolicy,
      stateBytes: Array[Long],
      mostBytes: Long
  ): Option[RegionWorkers] = workers.shares(tasks).map { shares =>
    val from = known.fold((0 until layout.shards).toArray)(k => layout.inherited(k.layout))
    val owner = workers.of(from.map(s => owners.lift(s).orNull))
    val now = known.map(_.in(layout))
    val planned = policy.homes(from, workers)
    val load = now.fold(new Array[Long](layout.shards))(_.load)
    val choice = HomeChoice.of(owner, planned, load, stateBytes, mostBytes)
    val before = now.fold(Array.fill(layout.shards)(-1)) { k =>
      TieredBinder.before(k.taskOf, k.executorOf, workers, shares, choice.home)
    }
    new RegionWorkers(workers, shares, choice, before, now.fold(0.0)(_.msPerLoad), stateBytes)
  }
}
