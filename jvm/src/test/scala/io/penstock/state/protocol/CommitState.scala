package io.penstock.state.protocol

/** A file other than a manifest. Its name contains a batch. */
sealed trait StateFile extends CachedHash {
  def batch: Int
}

/**
 * An attempt of a task. It also stands for the changelog that it writes and for its changes. Changes that the driver
 * writes inside a manifest are treated alike, except that they cannot exist before the manifest.
 *
 * @param offsets
 *   Run that logged the offsets of the batch, and thereby decided which rows the attempt reads
 * @param stage
 *   Action on the batch that the attempt belongs to; later actions have higher numbers
 * @param stageAttempt
 *   How often the stage had been submitted before
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
    val inStage = if (stage + stageAttempt > 0) s" of stage $stage.$stageAttempt" else ""
    s"attempt $task.$number$inStage of batch $batch in run $run"
  }
}

/** A file with the whole content of a shard. Its name contains the version, which is the batch that starts from it. */
final case class Snapshot(run: Int, history: Vector[Attempt]) extends StateFile {
  override def batch: Int = history.size
  override def toString: String = s"snapshot of version $batch in run $run"
}

/** Entry of a manifest for one shard. */
final case class Shard(snapshot: Option[Snapshot], deltas: Vector[Attempt]) extends CachedHash {

  /** The attempts that made the content, in order. They represent the content. */
  lazy val history: Vector[Attempt] = snapshot.fold(Vector.empty[Attempt])(_.history) ++ deltas

  def files: Vector[StateFile] = snapshot.toVector ++ deltas

  /** Replaces the changes that a snapshot contains by the snapshot, if it belongs to this history. */
  def withSnapshot(s: Snapshot): Shard = {
    val i = deltas.lastIndexOf(s.history.last)
    if (i < 0) this else Shard(Some(s), deltas.drop(i + 1))
  }
}

/**
 * The state after a batch.
 *
 * @param base
 *   Generation of the previous batch's manifest that this one builds on; -1 before the first batch
 * @param shards
 *   Content of each shard; empty if it is omitted because nobody reads it any more
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

  /** A manifest of which only the name matters. */
  val LeftOut: Manifest = Manifest(-1, Vector.empty)
}

/** Memory of a run of the query, in the process that plans its batches. */
sealed trait Driver extends CachedHash {
  def run: Int
}

object Driver {

  /** The run has read the offset log up to the entry of this batch. */
  final case class HasReadOffsets(run: Int, newest: Int) extends Driver

  /** The run is at a new batch, which has no offsets yet. */
  final case class HasNewBatch(run: Int, batch: Int) extends Driver

  /** The offsets of the batch are logged, but the run does not know the existing manifests yet. */
  final case class HasOffsets(run: Int, batch: Int) extends Driver

  /**
   * The run executes a batch.
   *
   * @param offsets
   *   Run that logged the offsets of the batch
   * @param base
   *   Manifest of the previous batch that the batch builds on
   * @param baseGeneration
   *   Generation of `base`
   * @param next
   *   By batch, the generation to write next as far as the run knows
   * @param stages
   *   One stage for each action on the batch
   * @param reported
   *   By shard, the attempt that counts in the newest complete round, or in the first round
   * @param further
   *   By shard, the attempt that counts in a further round that is not complete
   * @param waiting
   *   Attempts that have written but not reported
   * @param alive
   *   Attempts that have reported but not ended
   * @param unanswered
   *   Attempts that wait for the manifest after the one that is being written
   * @param answers
   *   Attempts that wait for the manifest that is being written
   * @param unwritten
   *   Manifest that is being written
   * @param written
   *   Manifest of the batch that the run has written last
   * @param committed
   *   Whether the run has committed the batch
   * @param snapshot
   *   Snapshot that was reported last
   * @param writing
   *   Snapshot that is written but not reported
   * @param durable
   *   Newest batch that the run has made durable
   * @param garbage
   *   Files and manifests that the run's cleaner is about to delete
   * @param messages
   *   Number of messages, as [[Mutation.CountTasksOnce]] counts them
   */
  final case class Running(
      run: Int,
      batch: Int,
      offsets: Int,
      base: Manifest,
      baseGeneration: Int,
      next: Vector[Int],
      stages: Vector[Stage],
      reported: Map[Int, Attempt] = Map.empty,
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
 * The result of a cleaner's look at the manifests.
 *
 * @param oldest
 *   Oldest retained batch
 * @param needed
 *   Files that retained manifests name
 * @param lateFiles
 *   Files of retained batches that a mutation deletes nevertheless
 * @param lateManifests
 *   Manifests of retained batches that a mutation deletes nevertheless
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
 * The state of the whole system.
 *
 * @param files
 *   Changelogs and snapshots
 * @param manifests
 *   Manifests that exist
 * @param offsets
 *   Offset log: by batch, the run that logged its offsets
 * @param committed
 *   Newest batch in the commit log; -1 without one
 * @param drivers
 *   Runs that are alive
 * @param runs
 *   Number of runs that were started
 * @param rewound
 *   Oldest batch that was retained when the query was rewound, if it was rewound
 * @param ended
 *   Runs that have found that another run is alive
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

  /** Ends a run that finds that another run has already done what it was about to do. */
  def ends(run: Int): CommitState = copy(drivers = drivers.filter(_.run != run), ended = ended + run)
}
