package io.penstock.state.format

/**
 * Which files of a query's state may go: a pure decision over names, so that it can be tested with any history. No clock
 * takes part in it: what is not older than every retained batch stays, needed or not, because a batch may yet be made of
 * it. Docs: PROTOCOL.md, "Commit".
 */
object Reachability {

  /**
   * Batches that are kept beside those that a query may be rewound by: the newest one may not be committed, and while two
   * runs are alive one of them may be a batch behind the other.
   */
  val BatchesBeside = 2

  /**
   * A file as a listing shows it.
   *
   * @param batchId
   *   first part of its name: the batch that wrote it, the version of a snapshot
   */
  final case class Listed(path: String, batchId: Long)

  /**
   * The oldest batch that is kept whole when the state of a batch is durable.
   *
   * @param minBatches
   *   `spark.sql.streaming.minBatchesToRetain`
   */
  def oldestRetained(newestBatch: Long, minBatches: Int): Long =
    math.max(0L, newestBatch - minBatches - BatchesBeside + 1)

  /**
   * The manifests to keep: all generations of the retained batches. A later batch may go on from any of them, not only from
   * the newest.
   *
   * @param manifests
   *   batch id and generation of all manifests
   * @param newestBatch
   *   newest batch whose state is durable
   * @param minBatches
   *   `spark.sql.streaming.minBatchesToRetain`
   * @return
   *   ascending
   */
  def retained(manifests: Seq[(Long, Long)], newestBatch: Long, minBatches: Int): Seq[(Long, Long)] =
    manifests.filter(_._1 >= oldestRetained(newestBatch, minBatches)).sorted

  /**
   * Files that are older than every retained batch, and that no retained manifest names.
   *
   * @param files
   *   everything there is
   * @param keep
   *   retained manifests
   * @param needed
   *   containers that those manifests name
   */
  def garbage(files: Seq[Listed], keep: Seq[(Long, Long)], needed: Set[Container]): Seq[Listed] = {
    val paths = needed.map(_.path)
    keep.headOption.fold(Seq.empty[Listed]) { case (oldest, _) =>
      files.filter(f => f.batchId < oldest && !paths.contains(f.path))
    }
  }

  /**
   * Whether the manifest of a batch may name a file of snapshots that it has not named before: one that is older may be
   * gone, if it was announced late.
   */
  def mayName(snapshots: Container, batchId: Long, minBatches: Int): Boolean = snapshots match {
    case Container.Snapshots(version, _) => version >= oldestRetained(batchId, minBatches)
    case _ => true
  }
}
