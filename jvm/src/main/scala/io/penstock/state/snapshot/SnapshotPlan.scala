package io.penstock.state.snapshot

/**
 * Chooses the shards of a task that are written as snapshots when a batch begins. Shards form groups that fill a file.
 * The groups are staggered, so that not all shards are due in the same batch, and a budget prevents bursts of writes.
 */
object SnapshotPlan {

  /**
   * A shard with changes that are in no snapshot.
   *
   * @param changes
   *   Number of batches whose changes to the shard are in no snapshot
   * @param changedBytes
   *   Size of these changes
   * @param contentBytes
   *   Size of the whole content of the shard, which a snapshot writes
   * @param failures
   *   Number of snapshots of the shard that have failed since the last successful one
   */
  final case class Candidate(shard: Int, changes: Int, changedBytes: Long, contentBytes: Long, failures: Int = 0)

  /**
   * A snapshot that is large compared to the changes waits for this many times as many changes. The factor weighs the
   * cost of writing the whole shard repeatedly against the cost of reading more changes when the shard is loaded.
   */
  private val PatienceFactor = 16

  /** Creating a file that is smaller than this takes longer than filling it. */
  private val MinFileBytes = 1L << 20

  /** A shard whose snapshots fail is tried again at least every `2^MaxBackoff * minChanges` batches. */
  private val MaxBackoff = 5

  /**
   * The shards to write.
   *
   *   - Shards take turns in groups. There are as many groups as files can be filled, at most `minChanges`: a small
   *     state is one group and is written to one file every `minChanges` batches.
   *   - Shards with the most changes come first, as far as the budget goes. The first one is always written, however
   *     large it is, so that every shard is written eventually.
   *   - At most one shard whose last snapshot has failed is tried again, in addition to the others and less often with
   *     each failure. A shard that can never be written therefore does not delay the others.
   *
   * @param turn
   *   Batch number plus task number, so that tasks with a small state write in different batches
   * @param minChanges
   *   Minimum number of changes that justifies a snapshot, at least 1
   * @param budgetBytes
   *   Number of bytes that the task may write for this batch
   */
  def choose(candidates: Seq[Candidate], turn: Long, minChanges: Int, budgetBytes: Long): Seq[Int] = {
    val (failing, healthy) = candidates.partition(_.failures > 0)
    val groups = groupsOf(healthy, minChanges)
    val due = healthy
      .filter(c => isWorthIt(c, minChanges) && (isLate(c, minChanges) || isTurn(c, turn, minChanges, groups)))
      .sortBy(c => (-c.changes, c.shard))
    val retried = failing.filter(isRetried(_, turn, minChanges)).minByOption(c => (c.failures, c.shard))
    withinBudget(due, budgetBytes).map(_.shard) ++ retried.map(_.shard)
  }

  private def withinBudget(due: Seq[Candidate], budgetBytes: Long): Seq[Candidate] = {
    var left = budgetBytes
    due.zipWithIndex.collect {
      case (c, i) if i == 0 || c.contentBytes <= left =>
        left -= c.contentBytes
        c
    }
  }

  private def isRetried(c: Candidate, turn: Long, minChanges: Int): Boolean =
    (turn + c.shard) % (minChanges.toLong << math.min(c.failures, MaxBackoff)) == 0

  private def isWorthIt(c: Candidate, minChanges: Int): Boolean =
    c.changes >= minChanges && (c.changes >= PatienceFactor * minChanges || isMuchChanged(c))

  private def isMuchChanged(c: Candidate): Boolean = c.changedBytes * 2 >= c.contentBytes

  /** A shard that missed its turn, because of the budget or a change of task, does not wait for the next one. */
  private def isLate(c: Candidate, minChanges: Int): Boolean =
    c.changes >= (if (isMuchChanged(c)) 2 else PatienceFactor + 1) * minChanges

  private def groupsOf(shards: Seq[Candidate], minChanges: Int): Int =
    math.min(math.max(1L, shards.map(_.contentBytes).sum / MinFileBytes), minChanges.toLong).toInt

  private def isTurn(c: Candidate, turn: Long, minChanges: Int, groups: Int): Boolean =
    (turn + (c.shard % groups) * minChanges / groups) % minChanges == 0
}
