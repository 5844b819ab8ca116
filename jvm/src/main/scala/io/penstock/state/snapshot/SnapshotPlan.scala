package io.penstock.state.snapshot

/**
 * Which shards of a task are written as snapshots when a batch begins: in groups that fill a file, staggered, so that not
 * all of them are due in the same batch, and bounded, so that no batch is followed by a burst of writes.
 */
object SnapshotPlan {

  /**
   * A shard with changes that are in no snapshot.
   *
   * @param changes
   *   how many batches' changes
   * @param changedBytes
   *   their size
   * @param contentBytes
   *   size of all that the shard holds: what a snapshot writes
   * @param failures
   *   snapshots of it that have failed since the last one that did not
   */
  final case class Candidate(shard: Int, changes: Int, changedBytes: Long, contentBytes: Long, failures: Int = 0)

  /**
   * A snapshot that is large beside the changes waits for this many times as many of them: what it costs to write all of
   * a shard, again and again, against what it costs to read the changes of so many batches when the shard is loaded.
   */
  private val PatienceFactor = 16

  /** It takes longer to create a smaller file than to fill it. */
  private val MinFileBytes = 1L << 20

  /** A shard whose snapshots fail is tried at least every `2^MaxBackoff` times `minChanges` batches. */
  private val MaxBackoff = 5

  /**
   * The shards to write.
   *
   *   - Shards take turns in as many groups as files can be filled, up to `minChanges`: a small state is written whole, in
   *     one file in so many batches.
   *   - Those with most changes first, as far as the budget goes. The first one is always written, however large it is, so
   *     that every shard has its turn.
   *   - At most one whose last snapshot has failed, in turns that become rarer with each failure, and besides the others: a
   *     shard that can never be written keeps none of them waiting.
   *
   * @param turn
   *   number of the batch plus that of the task, so that tasks with a small state write in different batches
   * @param minChanges
   *   changes that a snapshot has to be worth, at least 1
   * @param budgetBytes
   *   what the task may write for this batch
   */
  def choose(candidates: Seq[Candidate], turn: Long, minChanges: Int, budgetBytes: Long): Seq[Int] = {
    val (failing, healthy) = candidates.partition(_.failures > 0)
    val groups = groupsOf(healthy, minChanges)
    val due = healthy
      .filter(c => isWorthIt(c, minChanges) && (isLate(c, minChanges) || isTurn(c, turn, minChanges, groups)))
      .sortBy(c => (-c.changes, c.shard))
    val again = failing.filter(isRetried(_, turn, minChanges)).minByOption(c => (c.failures, c.shard))
    withinBudget(due, budgetBytes).map(_.shard) ++ again.map(_.shard)
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

  /** A shard whose turn the budget, or another task, took away does not wait for its next one. */
  private def isLate(c: Candidate, minChanges: Int): Boolean =
    c.changes >= (if (isMuchChanged(c)) 2 else PatienceFactor + 1) * minChanges

  private def groupsOf(shards: Seq[Candidate], minChanges: Int): Int =
    math.min(math.max(1L, shards.map(_.contentBytes).sum / MinFileBytes), minChanges.toLong).toInt

  private def isTurn(c: Candidate, turn: Long, minChanges: Int, groups: Int): Boolean =
    (turn + (c.shard % groups) * minChanges / groups) % minChanges == 0
}
