package io.penstock.state.snapshot

/**
 * Which shards of a task are written as snapshots when a batch begins: staggered, so that not all of them are due in the
 * same batch, and bounded, so that no batch is followed by a burst of writes.
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
   */
  final case class Candidate(shard: Int, changes: Int, changedBytes: Long, contentBytes: Long)

  /**
   * A snapshot that is large beside the changes waits for this many times as many of them: what it costs to write all of
   * a shard, again and again, against what it costs to read the changes of so many batches when the shard is loaded.
   */
  private val PatienceFactor = 16

  /**
   * The shards to write, the one with most changes first. At least one, if any is due, however large it is.
   *
   * @param batchId
   *   shards take turns by it
   * @param minChanges
   *   changes that a snapshot has to be worth, at least 1
   * @param budgetBytes
   *   what the task may write for this batch
   */
  def choose(candidates: Seq[Candidate], batchId: Long, minChanges: Int, budgetBytes: Long): Seq[Int] = {
    val due = candidates.filter(isDue(_, batchId, minChanges)).sortBy(c => (-c.changes, c.shard))
    val sums = due.scanLeft(0L)(_ + _.contentBytes).tail
    due.zip(sums).zipWithIndex.collect { case ((c, sum), i) if i == 0 || sum <= budgetBytes => c.shard }
  }

  private def isDue(c: Candidate, batchId: Long, minChanges: Int): Boolean = {
    val isWorthIt = c.changes >= minChanges &&
      (c.changes >= PatienceFactor * minChanges || c.changedBytes * 2 >= c.contentBytes)
    // A shard whose turn the budget took away does not wait for its next one.
    val isLate = c.changes >= (PatienceFactor + 1) * minChanges
    isWorthIt && (isLate || (batchId + c.shard) % minChanges == 0)
  }
}
