package io.penstock.state.protocol

/** A fault that is built into the protocol, to see that the properties find it. */
sealed trait Mutation

object Mutation {

  /** A task is answered before the manifest is durable. */
  case object AnswerFirst extends Mutation

  /** A message of a batch that is over counts for the batch at hand. */
  case object AcceptLate extends Mutation

  /** Messages are counted, not shards: an attempt that takes another's place is taken for another task. */
  case object CountTasksOnce extends Mutation

  /** The last attempt that tells a shard counts, whatever Spark counts. */
  case object LastCommitWins extends Mutation

  /** A second attempt of a task is answered while the one that told first runs. */
  case object AnswerCopies extends Mutation

  /** An attempt that told first counts though it has failed. */
  case object KeepFailed extends Mutation

  /** What is told of a further round goes into the next generation, complete or not. */
  case object WriteIncompleteRound extends Mutation

  /** What is told of a further round counts for nothing. */
  case object IgnoreFurtherRound extends Mutation

  /** A task is answered before its manifest is durable if an older generation of the batch is. */
  case object AnswerFurtherFirst extends Mutation

  /** A task is answered with a manifest that was begun before the task told. */
  case object AnswerUnnamed extends Mutation

  /** A new run begins with the first generation of the batch before. */
  case object StartFromFirstGeneration extends Mutation

  /** A run does not look which generations there are, and writes over them. */
  case object ForgetGenerations extends Mutation

  /** A run looks which generations there are of its first batch only. */
  case object ForgetLaterGenerations extends Mutation

  /** The cleaner goes by the age of a file, not by what is needed. */
  case object CleanByAge extends Mutation

  /** The cleaner retains no batch beside those to rewind by: the newest one may not be committed. */
  case object RetainTooFew extends Mutation

  /** The cleaner retains one batch beside those to rewind by, which is enough while no other run is alive. */
  case object RetainForOneRun extends Mutation

  /** The cleaner retains newest generations: an hour later the others go, and files that only they name. */
  case object CleanSuperseded extends Mutation

  /** The cleaner deletes what no manifest names an hour after it was written, though its batch is retained. */
  case object CleanUnnamed extends Mutation

  /** A manifest refers to a snapshot however old that is. */
  case object AnySnapshot extends Mutation

  /** A reader takes the newest generation of each batch for the history of a version. */
  case object HistoryByNewestGeneration extends Mutation

  /** Offsets are logged with the commit, as in Real-Time Mode: two runs of a batch may have read different rows. */
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
