package io.penstock.state.protocol

import io.penstock.state.protocol.ShardMemoryState._

/**
 * A shard in the memory of executors, and the files that it is loaded from.
 *
 * @param manifests
 *   Manifests in the checkpoint: those of the current batch, and the one that it builds on
 * @param image
 *   Snapshot that is written but not reported
 */
final case class ShardMemoryState(
    driver: Driver,
    executors: Vector[Executor],
    tasks: Set[Task] = Set.empty,
    manifests: Map[(Int, Int), Manifest] = Map.empty,
    image: Option[Image] = None
) extends CachedHash {

  def withExecutor(e: Int, next: Executor): ShardMemoryState = copy(executors = executors.updated(e, next))

  def withTask(before: Task, next: Task): ShardMemoryState = copy(tasks = tasks - before + next)
}

object ShardMemoryState {

  /**
   * The commits that made the content, in order. They represent the content.
   *
   * Executors identify content by the last of these commits, its ''lineage''. None is the lineage of a shard before its
   * first batch.
   */
  type Content = Vector[Commit]
  type Lineage = Option[Commit]

  /**
   * The changes of an attempt to a shard. Executors and the driver only compare these for equality.
   *
   * @param life
   *   Life of the checkpoint
   * @param base
   *   Lineage that the batch starts from
   */
  final case class Commit(life: Int, batch: Int, attempt: Int, base: Lineage) extends CachedHash {
    override def toString: String = s"$life.$batch.$attempt"
  }

  /** The content that a lineage identifies. */
  def content(lineage: Lineage): Content = lineage.fold(Vector.empty[Commit])(c => content(c.base) :+ c)

  def show(lineage: Lineage): String = lineage.fold("empty")(_.toString)

  def show(content: Content): String = content.mkString("[", ", ", "]")

  /** Content at a lineage, in memory or in a snapshot. */
  final case class Image(lineage: Lineage, content: Content) extends CachedHash

  /** The state after a batch. Changes of inlined sections are in the manifest itself. */
  final case class Manifest(lineage: Commit, snapshot: Option[Image], deltas: Vector[Commit]) extends CachedHash {
    def content: Content = snapshot.fold(Vector.empty[Commit])(_.content) ++ deltas
  }

  /**
   * The driver while it runs a batch.
   *
   * @param base
   *   Lineage that the batch starts from
   * @param baseGeneration
   *   Generation of the base batch's manifest; there is none before the first batch
   * @param generation
   *   Generation that this batch writes next
   * @param attempts
   *   Number of attempts that were started
   * @param reported
   *   Commit of the attempt that counts
   * @param succeeded
   *   Whether Spark knows that the attempt that counts has succeeded
   * @param snapshot
   *   Snapshot that was reported
   */
  final case class Driver(
      life: Int = 0,
      batch: Int = 0,
      base: Lineage = None,
      baseGeneration: Int = -1,
      generation: Int = 0,
      attempts: Int = 0,
      reported: Lineage = None,
      succeeded: Boolean = false,
      snapshot: Option[Image] = None
  ) extends CachedHash

  /**
   * An executor.
   *
   * @param slot
   *   Content of the shard, if the executor holds it
   * @param prepared
   *   Change sets of attempts that ran here, to be applied to the slot's content
   * @param cache
   *   Manifests that were read, by batch and generation
   */
  final case class Executor(
      alive: Boolean = true,
      slot: Option[Image] = None,
      prepared: Set[Commit] = Set.empty,
      cache: Map[(Int, Int), Manifest] = Map.empty
  ) extends CachedHash {

    def has(lineage: Lineage): Boolean = slot.exists(_.lineage == lineage)

    /** Replaces the content of the slot. Change sets that do not continue it are dropped. */
    def withSlot(image: Image): Executor =
      copy(slot = Some(image), prepared = prepared.filter(_.base == image.lineage))
  }

  /**
   * An attempt of a task.
   *
   * @param lease
   *   Lineage that the attempt must read
   * @param generation
   *   Generation of the previous batch's manifest that has this lineage
   * @param held
   *   Content that the attempt has opened
   * @param seen
   *   Content that the attempt's changes are based on
   */
  final case class Task(
      executor: Int,
      life: Int,
      batch: Int,
      attempt: Int,
      lease: Lineage,
      generation: Int,
      held: Option[Content] = None,
      seen: Option[Content] = None,
      reported: Boolean = false
  ) extends CachedHash {
    def commit: Commit = Commit(life, batch, attempt, lease)

    /** Identity of the manifest to load. */
    def manifest: (Int, Int) = (batch - 1, generation)

    override def toString: String = s"attempt $life.$batch.$attempt"
  }
}
