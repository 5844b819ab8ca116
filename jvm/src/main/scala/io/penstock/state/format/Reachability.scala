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
   * The manifests to keep: of each retained batch the newest generation, which is the truth, and those that the kept ones
   * of the batch after go on from; of the newest batch all, because a run may be about to go on from any.
   *
   * @param manifests
   *   batch id and generation of all manifests
   * @param newestBatch
   *   newest batch whose state is durable
   * @param retain
   *   number of batches to keep
   * @param baseOf
   *   generation of the batch before that a manifest goes on from
   * @return
   *   ascending
   */
  def retained(manifests: Seq[(Long, Long)], newestBatch: Long, retain: Int)(
      baseOf: ((Long, Long)) => Long
  ): Seq[(Long, Long)] = {
    val generations = manifests.filter(_._1 > newestBatch - retain).groupMap(_._1)(_._2)
    generations.keys.toSeq.sorted.foldRight(List.empty[(Long, Long)]) { (batch, kept) =>
      val gonOnFrom = kept.iterator.filter(_._1 == batch + 1).map(baseOf).filter(generations(batch).contains)
      val tips = if (batch >= newestBatch) generations(batch) else Seq(generations(batch).max)
      (gonOnFrom.toSet ++ tips).toList.sorted.map(batch -> _) ++ kept
    }
  }

  /**
   * Files that no retained batch needs. Those of the newest batch and later may be named yet, and stay whatever the clock
   * says. What is older than the oldest retained batch goes at once; what lies between is of an attempt that lost, or of a
   * second run, and goes after the grace time.
   *
   * @param files
   *   everything there is
   * @param keep
   *   retained manifests
   * @param needed
   *   containers that those manifests name
   * @param newestBatch
   *   newest batch whose state is durable
   */
  def garbage(
      files: Seq[Listed],
      keep: Seq[(Long, Long)],
      needed: Set[Container],
      newestBatch: Long,
      nowMs: Long,
      graceMs: Long
  ): Seq[Listed] = {
    val paths = needed.map(_.path) ++ keep.map { case (b, g) => Container.InManifest(b, g).path }
    val oldest = keep.map(_._1).minOption.getOrElse(Long.MinValue)
    files.filter(f =>
      f.batchId < newestBatch && !paths.contains(f.path) && (f.batchId < oldest || nowMs - f.modifiedMs > graceMs)
    )
  }
}
