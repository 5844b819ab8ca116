package org.apache.spark.sql.penstock.routing

import io.penstock.routing._
import io.penstock.sharding.Layout

/**
 * How the tasks and the shards of a region are divided among executors in one batch.
 *
 * @param choice
 *   where its shards are
 * @param replica
 *   executor that has a second copy of each shard, [[ExecutorSet.Unknown]] where none has
 * @param orphaned
 *   whether its owner is gone, and the copy takes its place
 * @param before
 *   the binding of the batch before in terms of `shares`: task of each shard, -1 where that says nothing
 * @param load
 *   of each shard in the batch before
 * @param msPerLoad
 *   what a unit of load took in the batch before; 0 where that is not known
 * @param stateBytes
 *   of each shard
 * @param move
 *   what it takes to bring one to another executor
 */
final private[routing] class TieredRegion private (
    val executors: ExecutorSet,
    shares: TaskShares,
    choice: HomeChoice,
    replica: Array[Int],
    orphaned: Array[Boolean],
    before: Array[Int],
    load: Array[Long],
    msPerLoad: Double,
    stateBytes: Array[Long],
    move: MoveCost
) {

  /** Executor that each task is meant for. */
  val executorOf: IndexedSeq[String] = (0 until shares.tasks).map(t => executors.locations(shares.executorOf(t)))

  /** Shards that are to come before tasks want them, in the order in which they matter, each with its executor. */
  def ahead: Seq[(Int, String)] = choice.ahead.map(s => s -> executors.locations(choice.home(s)))

  /** How many of those that are to go stay for a batch. */
  def waiting: Int = choice.waiting

  /** Shards that are to have a second copy, in the order in which they matter, each with its executor. */
  def copies(maxBytes: Long): Seq[(Int, String)] =
    ReplicaChoice.of(choice.home, replica, load, stateBytes, maxBytes, executors.size)
      .map { case (s, w) => s -> executors.locations(w) }

  def binder(theta: Double, deadBand: DeadBand): Binder =
    new TieredBinder(theta, deadBand, shares, choice.home, choice.home.indices.map(moveCost).toArray, before)

  /**
   * In units of load. Where it is not known what these take, nothing goes that has state. What has only a copy left is
   * nowhere as the last batch left it, and gets there soonest where the copy is.
   */
  private def moveCost(shard: Int): Double =
    if (stateBytes(shard) <= 0L) 0.0
    else if (msPerLoad <= 0.0 || orphaned(shard)) Double.PositiveInfinity
    else move.ms(stateBytes(shard)) / msPerLoad
}

private[routing] object TieredRegion {

  /**
   * None where executors do not matter: there is one; or there are more than tasks, and nothing says which are to be used.
   *
   * @param known
   *   of the region by the end of the batch before, in the terms of that batch's layout
   * @param owners
   *   executor that has each of that layout's shards, as a task location; null, or no entry, where unknown
   * @param replicas
   *   executor that has a second copy, likewise: where the owner is gone it takes its place
   * @param policy
   *   where tasks and shards are to be
   * @param maxBytes
   *   of state that goes by plan
   * @param move
   *   what it takes to bring a shard to another executor
   */
  def of(
      executors: ExecutorSet,
      tasks: Int,
      layout: Layout,
      known: Option[KnownRegion],
      owners: => Array[String],
      replicas: => Array[String],
      policy: HomePolicy,
      stateBytes: => Array[Long],
      maxBytes: Long,
      move: MoveCost
  ): Option[TieredRegion] =
    executors.shares(tasks, policy.tasks, known.fold(Seq.empty[String])(_.executorOf)).map { shares =>
      val from = known.fold((0 until layout.shards).toArray)(k => layout.inherited(k.layout))
      // Asked for here: most applications run in one JVM, and need none of it.
      val (owned, copied, bytes) = (owners, replicas, stateBytes)
      val replica = executors.of(from.map(s => copied.lift(s).orNull))
      val first = executors.of(from.map(s => owned.lift(s).orNull))
      val orphaned = first.zip(replica).map { case (f, r) => f == ExecutorSet.Unknown && r != ExecutorSet.Unknown }
      val owner = first.indices.map(s => if (orphaned(s)) replica(s) else first(s)).toArray
      val now = known.map(_.in(layout))
      val wanted = policy.homes(from, owner, executors)
      val load = now.fold(new Array[Long](layout.shards))(_.load)
      val choice = HomeChoice.of(owner, wanted, load, bytes, maxBytes)
      val before = now.fold(Array.fill(layout.shards)(-1)) { k =>
        TieredBinder.before(k.taskOf, k.executorOf, executors, shares, choice.home)
      }
      new TieredRegion(
        executors,
        shares,
        choice,
        replica,
        orphaned,
        before,
        load,
        now.fold(0.0)(_.msPerLoad),
        bytes,
        move
      )
    }
}
