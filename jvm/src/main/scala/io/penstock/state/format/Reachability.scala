package io.penstock.state.format

/**
 * Decides which files of a query's state may be deleted. The decision depends on names alone, so that it can be tested
 * with any history. It does not use a clock: a file that is not older than every retained batch is kept even if no
 * manifest names it, because a later commit may still use it. Specified in docs/PROTOCOL.md, section 7.
 */
object Reachability {

  /**
   * Number of batches that are kept in addition to those that a query may be rewound by. The newest batch may not be
   * committed yet, and while two runs are alive, one of them may be a batch behind the other.
   */
  val BatchesBeside = 2

  /**
   * A file in a directory listing.
   *
   * @param batchId
   *   First part of the name: the batch that wrote the file, or the version of a snapshot
   */
  final case class Listed(path: String, batchId: Long)

  /**
   * The oldest batch that is kept completely once the state of the newest batch is durable.
   *
   * @param minBatches
   *   `spark.sql.streaming.minBatchesToRetain`
   */
  def oldestRetained(newestBatch: Long, minBatches: Int): Long =
    math.max(0L, newestBatch - minBatches - BatchesBeside + 1)

  /**
   * The manifests to keep: all generations of the retained batches. A later batch may be based on any of them, not only
   * on the newest.
   *
   * @param manifests
   *   Batch id and generation of each manifest
   * @param newestBatch
   *   Newest batch whose state is durable
   * @param minBatches
   *   `spark.sql.streaming.minBatchesToRetain`
   * @return
   *   Batch id and generation of the manifests to keep, ascending
   */
  def retained(manifests: Seq[(Long, Long)], newestBatch: Long, minBatches: Int): Seq[(Long, Long)] =
    manifests.filter(_._1 >= oldestRetained(newestBatch, minBatches)).sorted

  /**
   * Files that are older than every retained batch and to which no retained manifest refers.
   *
   * @param files
   *   All files of the state
   * @param keep
   *   Batch id and generation of the retained manifests, ascending
   * @param needed
   *   Containers to which the retained manifests refer
   */
  def garbage(files: Seq[Listed], keep: Seq[(Long, Long)], needed: Set[Container]): Seq[Listed] = {
    val paths = needed.map(_.path)
    keep.headOption.fold(Seq.empty[Listed]) { case (oldest, _) =>
      files.filter(f => f.batchId < oldest && !paths.contains(f.path))
    }
  }

  /**
   * Whether the manifest of a batch may refer to a snapshot file for the first time. If the driver learns of a file
   * late, the file may be so old that it has been deleted.
   */
  def mayName(snapshots: Container, batchId: Long, minBatches: Int): Boolean = snapshots match {
    case Container.Snapshots(version, _) => version >= oldestRetained(batchId, minBatches)
    case _ => true
  }
}
