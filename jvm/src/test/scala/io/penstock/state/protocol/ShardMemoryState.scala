package io.penstock.state.protocol

import io.penstock.state.protocol.ShardMemoryState._

/**
 * A shard in memory of executors, and what it comes from.
 *
 * @param manifests
 *   in the checkpoint: of the batch at hand, the newest, and the one that it builds on
 * @param image
 *   a snapshot that is written and not told
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
   * The commits that made the content, in order. They stand for the content.
   *
   * What an executor knows of content is the last one, its ''lineage''. None is the lineage of a shard before its first
   * batch.
   */
  type Content = Vector[Commit]
  type Lineage = Option[Commit]

  /**
   * What an attempt has made of a shard. Executors and the driver look at nothing but whether two are the same.
   *
   * @param life
   *   of the checkpoint
   * @param base
   *   lineage that the batch starts from
   */
  final case class Commit(life: Int, batch: Int, attempt: Int, base: Lineage) extends CachedHash {
    override def toString: String = s"$life.$batch.$attempt"
  }

  /** The content that a lineage stands for. */
  def content(lineage: Lineage): Content = lineage.fold(Vector.empty[Commit])(c => content(c.base) :+ c)

  def show(lineage: Lineage): String = lineage.fold("empty")(_.toString)

  def show(content: Content): String = content.mkString("[", ", ", "]")

  /** Content at a lineage: in memory, or in a snapshot. */
  final case class Image(lineage: Lineage, content: Content) extends CachedHash

  /** The state after a batch; changes of inlined sections are in the manifest itself. */
  final case class Manifest(lineage: Commit, snapshot: Option[Image], deltas: Vector[Commit]) extends CachedHash {
    def content: Content = snapshot.fold(Vector.empty[Commit])(_.content) ++ deltas
  }

  /**
   * The driver, at a batch.
   *
   * @param base
   *   lineage that the batch starts from
   * @param baseGeneration
   *   generation of its manifest; there is none before the first batch
   * @param generation
   *   the next one of this batch
   * @param attempts
   *   how many were started
   * @param told
   *   what counts
   * @param succeeded
   *   whether Spark knows that the attempt which counts has succeeded
   * @param snapshot
   *   one that was told
   */
  final case class Driver(
      life: Int = 0,
      batch: Int = 0,
      base: Lineage = None,
      baseGeneration: Int = -1,
      generation: Int = 0,
      attempts: Int = 0,
      told: Lineage = None,
      succeeded: Boolean = false,
      snapshot: Option[Image] = None
  ) extends CachedHash

  /**
   * An executor.
   *
   * @param slot
   *   the shard, if it has it
   * @param prepared
   *   change sets for the content in the slot, of attempts that have run here
   * @param cache
   *   manifests that were read, by batch and generation
   */
  final case class Executor(
      alive: Boolean = true,
      slot: Option[Image] = None,
      prepared: Set[Commit] = Set.empty,
      cache: Map[(Int, Int), Manifest] = Map.empty
  ) extends CachedHash {

    def has(lineage: Lineage): Boolean = slot.exists(_.lineage == lineage)

    /** With other content in its slot. Change sets that do not continue it are of no use any more. */
    def withSlot(image: Image): Executor =
      copy(slot = Some(image), prepared = prepared.filter(_.base == image.lineage))
  }

  /**
   * An attempt of a task.
   *
   * @param lease
   *   lineage that it must read
   * @param generation
   *   of the manifest of the batch before which has that lineage
   * @param held
   *   the content that it has opened
   * @param seen
   *   the content that its changes were made from
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
      told: Boolean = false
  ) extends CachedHash {
    def commit: Commit = Commit(life, batch, attempt, lease)

    /** Name of the manifest to load. */
    def manifest: (Int, Int) = (batch - 1, generation)

    override def toString: String = s"attempt $life.$batch.$attempt"
  }
}
