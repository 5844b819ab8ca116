package io.penstock.state.format

/** Which files of a query's state may go: a pure decision over names, so that it can be tested with any history. */
object Reachability {

  /**
   * A file as a listing shows it.
   *
   * @param batchId
   *   first part of its name: the batch that wrote it, the version of a snapshot
   * @param modifiedMs
   *   modification time, ms since the epoch
   */
  final case class Listed(path: String, batchId: Long, modifiedMs: Long)

  /**
   * The generations that are the truth: the newest one of each retained batch.
   *
   * @param manifests
   *   batch id and generation of all manifests
   * @param newestBatch
   *   newest batch whose state is durable
   * @param retain
   *   number of batches to keep
   */
  def retained(manifests: Seq[(Long, Long)], newestBatch: Long, retain: Int): Seq[(Long, Long)] =
    manifests
      .filter(_._1 > newestBatch - retain)
      .groupBy(_._1)
      .map { case (batch, all) => (batch, all.map(_._2).max) }
      .toSeq
      .sorted

  /**
   * Files that no retained batch needs. What is older than the oldest retained batch goes at once; what is younger may
   * have been written and not be named yet, or be of an attempt that lost, and goes after the grace time.
   *
   * @param files
   *   everything there is
   * @param keep
   *   retained manifests, newest generation each
   * @param needed
   *   containers that those manifests name
   */
  def garbage(
      files: Seq[Listed],
      keep: Seq[(Long, Long)],
      needed: Set[Container],
      nowMs: Long,
      graceMs: Long
  ): Seq[Listed] = {
    val paths = needed.map(_.path) ++ keep.map { case (b, g) => Container.InManifest(b, g).path }
    val oldest = keep.map(_._1).minOption.getOrElse(Long.MinValue)
    files.filter(f => !paths.contains(f.path) && (f.batchId < oldest || nowMs - f.modifiedMs > graceMs))
  }
}
