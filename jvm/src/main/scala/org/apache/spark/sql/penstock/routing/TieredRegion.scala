package org.apache.spark.sql.penstock.routing

import io.penstock.routing._
import io.penstock.sharding.Layout

/**
 * Division of a region's tasks and shards among executors in one batch.
 *
 * @param executors
 *   The executors
 * @param shares
 *   Which tasks belong to which executor
 * @param choice
 *   Home executor of each shard
 * @param replica
 *   Executor that has a replica of each shard, [[ExecutorSet.Unknown]] if there is none
 * @param orphaned
 *   Whether the owner of each shard is gone and its replica has taken over
 * @param before
 *   Binding of the batch before in terms of `shares`: task of each shard, -1 where it does not apply
 * @param load
 *   Load of each shard in the batch before
 * @param msPerLoad
 *   Milliseconds per unit of load in the batch before; 0 if unknown
 * @param stateBytes
 *   Size of each shard's state
 * @param move
 *   Estimated cost to bring a shard to another executor
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

  /** Executor that each task is planned for, as a task location. */
  val executorOf: IndexedSeq[String] = (0 until shares.tasks).map(t => executors.locations(shares.executorOf(t)))

  /** Shards to send before tasks need them, the most important first, each with its destination executor. */
  def ahead: Seq[(Int, String)] = choice.ahead.map(s => s -> executors.locations(choice.home(s)))

  /** Number of planned moves that are deferred to later batches. */
  def waiting: Int = choice.waiting

  /** Shards to replicate, the most important first, each with the executor that gets the replica. */
  def copies(maxBytes: Long): Seq[(Int, String)] =
    ReplicaChoice.of(choice.home, replica, load, stateBytes, maxBytes, executors.size)
      .map { case (s, w) => s -> executors.locations(w) }

  def binder(theta: Double, deadBand: DeadBand): Binder =
    new TieredBinder(theta, deadBand, shares, choice.home, choice.home.indices.map(moveCost).toArray, before)

  /**
   * Cost to move a shard, in units of load. If the time per unit of load is unknown, no shard that has state is moved.
   * A shard whose owner is gone stays with its replica: no executor has its newest
   * content, and it is restored fastest there.
   */
  private def moveCost(shard: Int): Double =
    if (stateBytes(shard) <= 0L) 0.0
    else if (msPerLoad <= 0.0 || orphaned(shard)) Double.PositiveInfinity
    else move.ms(stateBytes(shard)) / msPerLoad
}

private[routing] object TieredRegion {

  /**
   * Returns None if executors do not matter: there is only one, or there are more executors than tasks and no plan says
   * which ones to use.
   *
   * @param known
   *   What the run knows about the region at the end of the batch before, for that batch's layout
   * @param owners
   *   Executor that has each shard of that layout, as a task location; null or missing if unknown
   * @param replicas
   *   Executor that has a replica of each shard of that layout, as a task location; null or missing if there is none.
   *   The replica takes over if the owner is gone
   * @param policy
   *   Policy that places tasks and shards on executors
   * @param stateBytes
   *   Size of each shard's state
   * @param maxBytes
   *   Maximum size of the state that is moved by plan in one batch
   * @param move
   *   Estimated cost to bring a shard to another executor
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
      // Evaluated only here, because most applications run in one JVM and do not need these values.
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
