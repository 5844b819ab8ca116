package io.penstock.routing

/**
 * What a policy knows of a region in one batch.
 *
 * @param theta
 *   largest accepted imbalance
 * @param deadBand
 *   imbalance for which no shard is moved
 * @param acts
 *   whether the mode is `on`; in `observe` no shard moves to another executor
 */
final case class PolicyBatch(batch: Long, region: Long, theta: Double, deadBand: DeadBand, acts: Boolean)

/**
 * Policy that chooses the task of each shard, with everything that a query of that policy does. A policy is registered
 * once, in [[ShardPolicy.named]] or in [[ShardPolicy.seeded]]: the setting, its texts and the planner follow.
 *
 * @param toString
 *   value of the setting `spark.penstock.policy`
 */
abstract class ShardPolicy(override val toString: String) {

  /**
   * The binder for one region of one batch.
   *
   * @param planned
   *   planned task of each shard; None if there is no plan
   */
  def binder(batch: PolicyBatch, planned: => Option[Array[Int]]): Binder

  /**
   * Decides which keys are pinned.
   *
   * @param maxPinned
   *   largest number of pinned keys
   * @param planned
   *   returns the hashes that the planner wants to pin in a region; None if there is no plan
   */
  def pins(maxPinned: Int, planned: Long => Option[Set[Int]]): PinPolicy = NoPins

  /**
   * Decides on which executor each shard should be; None if tasks are not divided among executors. If they are divided
   * among several, a [[TieredBinder]] binds the shards instead of `binder`.
   *
   * @param planned
   *   planned moves of the previous batch's shards; None if there is no plan
   */
  def homes(batch: PolicyBatch, planned: => Option[Homes]): Option[HomePolicy] = None

  /** Name of the algorithm by which the planner sidecar places shards between batches; None if it places none. */
  def plannedBy: Option[String] = None

  /** Whether the planner sidecar learns the costs of rows, pins and moves for this policy. */
  def learnsCosts: Boolean = false
}

object ShardPolicy {

  /** Policies without a parameter. The first one is the default. */
  val named: Seq[ShardPolicy] = Seq(HybridPolicy, StaticPolicy) ++ PublishedPolicy.all

  /** Policies that take a seed, by name. */
  val seeded: Seq[(String, Long => ShardPolicy)] = Seq(ChaosShardPolicy.Name -> (new ChaosShardPolicy(_)))
}

/** Decides at the barrier, from the rows of the batch, and moves only the shards that balance requires. */
object HybridPolicy extends ShardPolicy("hybrid") {
  override def binder(batch: PolicyBatch, planned: => Option[Array[Int]]): Binder =
    new StickyBinder(batch.theta, batch.deadBand)
  override def pins(maxPinned: Int, planned: Long => Option[Set[Int]]): PinPolicy = new PlannedPins(planned, maxPinned)
  override def homes(batch: PolicyBatch, planned: => Option[Homes]): Option[HomePolicy] =
    Some(new PlannedHomes(planned.filter(_ => batch.acts)))
  override def learnsCosts: Boolean = true
}

/** Assigns tasks by shard id, whatever the load is. */
object StaticPolicy extends ShardPolicy("static") {
  override def binder(batch: PolicyBatch, planned: => Option[Array[Int]]): Binder = StaticBinder
}

/** A published algorithm, which the planner sidecar runs on the measurements of the previous batch. */
final class PublishedPolicy private (name: String) extends ShardPolicy(name) {
  override def binder(batch: PolicyBatch, planned: => Option[Array[Int]]): Binder = new PlannedBinder(planned)
  override def plannedBy: Option[String] = Some(name)
}

object PublishedPolicy {

  /** `refine` is Elasticutor's algorithm, `resourceCentric` its baseline; the others are from Fang et al. */
  val all: Seq[PublishedPolicy] =
    Seq("refine", "resourceCentric", "mixed", "minTable", "minMig").map(new PublishedPolicy(_))
}

/** Assigns tasks, pins and executors at random, for tests. All choices depend on the seed, the batch and the region. */
final class ChaosShardPolicy(val seed: Long) extends ShardPolicy(s"${ChaosShardPolicy.Name}($seed)") {
  override def binder(batch: PolicyBatch, planned: => Option[Array[Int]]): Binder =
    new ChaosBinder(seed, batch.batch, batch.region)
  override def pins(maxPinned: Int, planned: Long => Option[Set[Int]]): PinPolicy = new ChaosPins(seed, maxPinned)

  /** In about half of the batches, so that shards also arrive at tasks that did not expect them. */
  override def homes(batch: PolicyBatch, planned: => Option[Homes]): Option[HomePolicy] =
    Option.when(Chaos.random(seed ^ 1L, batch.batch, batch.region).nextInt(2) == 0)(
      new ChaosHomes(seed, batch.batch, batch.region)
    )
  override def equals(other: Any): Boolean = other match {
    case c: ChaosShardPolicy => c.seed == seed
    case _ => false
  }
  override def hashCode(): Int = seed.hashCode
}

object ChaosShardPolicy {
  val Name = "chaos"
}
