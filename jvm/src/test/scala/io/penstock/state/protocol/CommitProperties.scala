package io.penstock.state.protocol

import io.penstock.state.protocol.Driver.Running

/**
 * Properties that must hold in every state of the commit protocol, docs/PROTOCOL.md, section 7.
 *
 * A committed batch is ''retained'' if the query can be rewound to it: the last
 * `spark.sql.streaming.minBatchesToRetain` are.
 */
final class CommitProperties(bounds: Bounds, historyByNewestGeneration: Boolean) {

  /** The violated property, if there is one. */
  def violation(s: CommitState): Option[String] = {
    val oldest = Bounds.oldestRetained(bounds, s)
    val retained = math.max(0, oldest) to s.committed
    incomplete(s)
      .orElse(retained.flatMap(unreadable(s, _)).headOption)
      .orElse(retained.flatMap(torn(s, _, retained.head)).headOption)
      .orElse(s.drivers.flatMap(unloadable(s, _)).headOption)
      .orElse(endedByNobody(s))
      .orElse(s.drivers.flatMap(miscounted).headOption)
  }

  /** No shard is lost and none is counted twice: every manifest has the changes of every batch once, in order. */
  private def incomplete(s: CommitState): Option[String] = s.manifests.collectFirst {
    case ((batch, generation), m) if m.histories.exists(_.map(_.batch) != (0 to batch)) =>
      s"manifest $batch.$generation does not have every batch once: ${m.histories.mkString("; ")}"
  }

  /** A run can start from every retained batch: all files exist and were made from the logged offsets. */
  private def unreadable(s: CommitState, batch: Int): Option[String] = s.newest(batch) match {
    case None => Some(s"batch $batch is committed and has no manifest")
    case Some((generation, m)) =>
      missing(s, m)
        .map(f => s"manifest $batch.$generation, the newest of a committed batch, needs the file of $f")
        .orElse(m.histories.flatten.collectFirst {
          case a if s.offsets(a.batch) != a.offsets =>
            s"manifest $batch.$generation has $a, which has read other rows than those that are logged"
        })
  }

  /**
   * A reader that walks back from a retained batch along base generations finds that every batch continues the one
   * before. While at most one run is alive, the newest generations form the same history.
   */
  private def torn(s: CommitState, batch: Int, oldest: Int): Option[String] = {
    def before(b: Int, m: Manifest): Option[(Int, Manifest)] =
      if (historyByNewestGeneration || bounds.alive == 1) s.newest(b - 1)
      else s.manifests.get((b - 1, m.base)).map(m.base -> _)
    def walk(b: Int, at: (Int, Manifest)): Option[String] =
      if (b == oldest) None
      else {
        val (generation, m) = at
        before(b, m) match {
          case None => Some(s"manifest $b.$generation builds on ${b - 1}.${m.base}, which is not there")
          case Some((g, n)) if m.histories.map(_.init) != n.histories =>
            Some(s"manifest $b.$generation does not go on from where ${b - 1}.$g ended")
          case Some((g, n)) =>
            missing(
              s,
              n
            ).map(f => s"manifest ${b - 1}.$g, which is history, needs the file of $f").orElse(walk(b - 1, (g, n)))
        }
      }
    s.newest(batch).flatMap(walk(batch, _))
  }

  /** No orphan is needed: the base of a batch exists while the batch may be committed and its tasks retried. */
  private def unloadable(s: CommitState, driver: Driver): Option[String] = driver match {
    case d: Running if d.batch > s.committed =>
      missing(s, d.base).map(f => s"a task of run ${d.run} needs the file of $f")
    case _ => None
  }

  /** A run that is alone never finds that another run is alive. */
  private def endedByNobody(s: CommitState): Option[String] =
    if (bounds.alive > 1) None else s.ended.headOption.map(run => s"run $run is ended, and no other one was alive")

  /**
   * The state that a run builds on consists of attempts that Spark has counted. Either all belong to the newest
   * completed action, or all belong to later actions that reported every shard together.
   */
  private def miscounted(driver: Driver): Option[String] = driver match {
    case d: Running if d.committed =>
      val attempts = d.written.toSeq.flatMap(_.histories.map(_.last))
      val tasks = bounds.runs(d.run).tasks.indices.toSet
      val completed = d.stages.lastIndexWhere(_.isOver(tasks))
      val batch = s"batch ${d.batch} is committed with"
      attempts
        .find(a => !d.stages(a.stage).counts(a))
        .map(a => s"$batch $a, which Spark has not counted")
        .orElse(attempts.find(_.stage < completed).map(a => s"$batch $a, though stage $completed has completed"))
        .orElse(attempts.find(_.stage > completed && attempts.exists(_.stage == completed)).map { a =>
          s"$batch $a, though only a part of the shards was reported after stage $completed"
        })
    case _ => None
  }

  private def missing(s: CommitState, m: Manifest): Option[StateFile] = m.files.find(f => !s.files(f))
}
