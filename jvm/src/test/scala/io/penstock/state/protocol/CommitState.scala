package io.penstock.state.protocol

/** A file beside the manifests, and the batch in its name. */
sealed trait StateFile extends CachedHash {
  def batch: Int
}

/**
 * An attempt of a task. The changelog that it writes goes by its name, and so do the changes. Changes that the driver
 * writes with the manifest are no different; they only cannot be there before it is.
 *
 * @param offsets
 *   what it has read: the run that logged the offsets of the batch
 * @param stage
 *   the action on the batch that it belongs to; later actions have higher numbers
 * @param stageAttempt
 *   how often the stage had been submitted before
 */
final case class Attempt(
    run: Int,
    batch: Int,
    task: Int,
    number: Int,
    offsets: Int,
    stage: Int = 0,
    stageAttempt: Int = 0
) extends StateFile {
  override def toString: String = {
    val of = if (stage + stageAttempt > 0) s" of stage $stage.$stageAttempt" else ""
    s"attempt $task.$number$of of batch $batch in run $run"
  }
}

/** A file that holds a whole shard. Its name has the version, which is the batch that begins with it. */
final case class Snapshot(run: Int, history: Vector[Attempt]) extends StateFile {
  override def batch: Int = history.size
  override def toString: String = s"snapshot of version $batch in run $run"
}

/** What a manifest says of a shard. */
final case class Shard(snapshot: Option[Snapshot], deltas: Vector[Attempt]) extends CachedHash {

  /** The attempts that made the content. What they are called, in a row, stands for the content. */
  lazy val history: Vector[Attempt] = snapshot.fold(Vector.empty[Attempt])(_.history) ++ deltas

  def files: Vector[StateFile] = snapshot.toVector ++ deltas

  /** With a snapshot in place of the changes that it holds, if it belongs to this history. */
  def withSnapshot(s: Snapshot): Shard = {
    val i = deltas.lastIndexOf(s.history.last)
    if (i < 0) this else Shard(Some(s), deltas.drop(i + 1))
  }
}

/**
 * The state after a batch.
 *
 * @param base
 *   generation of the manifest of the batch before that it builds on; -1 before the first batch
 * @param shards
 *   the content; none where it is left out because nobody reads it any more
 */
final case class Manifest(base: Int, shards: Vector[Shard]) extends CachedHash {
  def histories: Vector[Vector[Attempt]] = shards.map(_.history)
  def files: Vector[StateFile] = shards.flatMap(_.files)
}

object Manifest {

  /** Name of a manifest: batch and generation. */
  type Id = (Int, Int)

  /** The state before the first batch. */
  def empty(shards: Int): Manifest = Manifest(-1, Vector.fill(shards)(Shard(None, Vector.empty)))

  /** One of which only its name counts. */
  val LeftOut: Manifest = Manifest(-1, Vector.empty)
}

/** What a run of the query remembers, in the process that plans its batches. */
sealed trait Driver extends CachedHash {
  def run: Int
}

object Driver {

  /** It has read the offset log, up to the entry of this batch. */
  final case class HasReadOffsets(run: Int, newest: Int) extends Driver

  /** It is at a new batch, which has no offsets yet. */
  final case class HasNewBatch(run: Int, batch: Int) extends Driver

  /** Offsets of its batch are on record; which manifests there are it does not know yet. */
  final case class HasOffsets(run: Int, batch: Int) extends Driver

  /**
   * It runs a batch.
   *
   * @param offsets
   *   the run that logged the offsets of the batch
   * @param base
   *   manifest of the batch before that the batch builds on
   * @param baseGeneration
   *   and its generation
   * @param next
   *   by batch: the generation to write next, as far as the run knows
   * @param stages
   *   one for each action on the batch
   * @param told
   *   by shard, the attempt that counts, of the newest round that is complete, or of the first one
   * @param further
   *   the same of a further round that is not complete
   * @param waiting
   *   attempts that have written and not told
   * @param alive
   *   attempts that have told and not ended
   * @param unanswered
   *   attempts that wait for the generation after the one that is being written
   * @param answers
   *   attempts that wait for the one that is being written
   * @param unwritten
   *   the manifest that is being written
   * @param written
   *   what the run has written of the batch last
   * @param committed
   *   whether the run has committed the batch
   * @param snapshot
   *   the last one that was told
   * @param writing
   *   one that is written and not told
   * @param durable
   *   newest batch that the run has made durable
   * @param garbage
   *   what its cleaner is about to delete
   * @param messages
   *   what [[Mutation.CountTasksOnce]] counts
   */
  final case class Running(
      run: Int,
      batch: Int,
      offsets: Int,
      base: Manifest,
      baseGeneration: Int,
      next: Vector[Int],
      stages: Vector[Stage],
      told: Map[Int, Attempt] = Map.empty,
      further: Map[Int, Attempt] = Map.empty,
      waiting: Set[Attempt] = Set.empty,
      alive: Set[Attempt] = Set.empty,
      unanswered: Set[Attempt] = Set.empty,
      answers: Set[Attempt] = Set.empty,
      unwritten: Option[Manifest] = None,
      written: Option[Manifest] = None,
      committed: Boolean = false,
      snapshot: Option[Snapshot] = None,
      writing: Option[Snapshot] = None,
      durable: Option[Int] = None,
      garbage: Option[Garbage] = None,
      messages: Int = 0
  ) extends Driver {
    def generation: Int = next(batch)
  }
}

/**
 * What a cleaner has found.
 *
 * @param oldest
 *   the oldest retained batch
 * @param needed
 *   files that retained manifests name
 * @param lateFiles
 *   files of retained batches that go all the same, in a mutation
 * @param lateManifests
 *   likewise
 */
final case class Garbage(
    oldest: Int,
    needed: Set[StateFile],
    lateFiles: Set[StateFile],
    lateManifests: Set[Manifest.Id]
) extends CachedHash {
  def has(f: StateFile): Boolean = f.batch < oldest && !needed(f) || lateFiles(f)
  def has(id: Manifest.Id): Boolean = id._1 < oldest || lateManifests(id)
}

/**
 * All there is.
 *
 * @param files
 *   changelogs and snapshots
 * @param manifests
 *   those that were created
 * @param offsets
 *   the offset log: by batch, the run that logged it
 * @param committed
 *   newest batch in the commit log; -1 without one
 * @param drivers
 *   runs that live
 * @param runs
 *   how many were started
 * @param rewound
 *   the oldest batch that was retained when the query was rewound, if it was
 * @param ended
 *   runs that have found that another one is alive
 */
final case class CommitState(
    files: Set[StateFile] = Set.empty,
    manifests: Map[Manifest.Id, Manifest] = Map.empty,
    offsets: Vector[Int] = Vector.empty,
    committed: Int = -1,
    drivers: Vector[Driver] = Vector.empty,
    runs: Int = 0,
    rewound: Option[Int] = None,
    ended: Set[Int] = Set.empty
) extends CachedHash {

  /** The generation after the newest of a batch. */
  def generations(batch: Int): Int =
    manifests.keysIterator.collect { case (`batch`, generation) => generation + 1 }.maxOption.getOrElse(0)

  /** Newest generation of a batch's manifest. */
  def newest(batch: Int): Option[(Int, Manifest)] = {
    val generation = generations(batch) - 1
    manifests.get((batch, generation)).map(generation -> _)
  }

  def withDriver(d: Driver): CommitState = copy(drivers = drivers.map(x => if (x.run == d.run) d else x))

  /** A run finds that another one has done what it was about to do. */
  def ends(run: Int): CommitState = copy(drivers = drivers.filter(_.run != run), ended = ended + run)
}
