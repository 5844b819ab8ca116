package io.penstock.state.protocol

/** A fault that is built into the protocol to check that the properties detect it. */
sealed trait Mutation

object Mutation {

  /** A task receives its answer before the manifest is durable. */
  case object AnswerFirst extends Mutation

  /** A message of a batch that is over counts for the current batch. */
  case object AcceptLate extends Mutation

  /** Messages are counted instead of shards: a replacing attempt is counted as another task. */
  case object CountTasksOnce extends Mutation

  /** The last attempt that reports a shard counts, whichever one Spark counts. */
  case object LastCommitWins extends Mutation

  /** A second attempt of a task receives its answer while the one that reported first is running. */
  case object AnswerCopies extends Mutation

  /** The attempt that reported first counts although it has failed. */
  case object KeepFailed extends Mutation

  /** Reports of a further round go into the next generation even if the round is incomplete. */
  case object WriteIncompleteRound extends Mutation

  /** Reports of a further round are ignored. */
  case object IgnoreFurtherRound extends Mutation

  /** A task receives its answer before its manifest is durable if an older generation of the batch is durable. */
  case object AnswerFurtherFirst extends Mutation

  /** A task receives its answer with a manifest that was begun before the task reported. */
  case object AnswerUnnamed extends Mutation

  /** A new run builds on the first generation of the previous batch. */
  case object StartFromFirstGeneration extends Mutation

  /** A run does not list the existing generations and overwrites them. */
  case object ForgetGenerations extends Mutation

  /** A run lists the existing generations of its first batch only. */
  case object ForgetLaterGenerations extends Mutation

  /** The cleaner deletes by the age of a file instead of by need. */
  case object CleanByAge extends Mutation

  /** The cleaner retains no batch beyond those for rewinding, although the newest one may not be committed. */
  case object RetainTooFew extends Mutation

  /** The cleaner retains one batch beyond those for rewinding, which suffices while no other run is alive. */
  case object RetainForOneRun extends Mutation

  /**
   * The cleaner retains newest generations only: an hour later it deletes the others, and files that only they name.
   */
  case object CleanSuperseded extends Mutation

  /** The cleaner deletes unnamed files an hour after they were written, although their batch is retained. */
  case object CleanUnnamed extends Mutation

  /** A manifest refers to a snapshot however old the snapshot is. */
  case object AnySnapshot extends Mutation

  /** A reader takes the newest generation of each batch as the history of a version. */
  case object HistoryByNewestGeneration extends Mutation

  /** Offsets are logged with the commit, as in Real-Time Mode, so two runs of a batch may have read different rows. */
  case object OffsetsLast extends Mutation

  val All: Seq[Mutation] = Seq(
    AnswerFirst,
    AcceptLate,
    CountTasksOnce,
    LastCommitWins,
    AnswerCopies,
    KeepFailed,
    WriteIncompleteRound,
    IgnoreFurtherRound,
    AnswerFurtherFirst,
    AnswerUnnamed,
    StartFromFirstGeneration,
    ForgetGenerations,
    ForgetLaterGenerations,
    CleanByAge,
    RetainTooFew,
    RetainForOneRun,
    CleanSuperseded,
    CleanUnnamed,
    AnySnapshot,
    HistoryByNewestGeneration,
    OffsetsLast
  )
}
