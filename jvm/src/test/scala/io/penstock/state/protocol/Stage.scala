package io.penstock.state.protocol

/**
 * State of a stage as Spark's scheduler knows it. In this model an action on a batch is one stage.
 *
 * @param attempt
 *   How often the stage was submitted again
 * @param started
 *   By task, the number of attempts that were started, including those of older stage attempts
 * @param counted
 *   By task, the attempt that Spark counts: the first to succeed within the newest stage attempt
 */
final case class Stage(attempt: Int = 0, started: Map[Int, Int] = Map.empty, counted: Map[Int, Attempt] = Map.empty)
    extends CachedHash {

  def isOver(tasks: Set[Int]): Boolean = tasks.forall(counted.contains)

  def counts(a: Attempt): Boolean = counted.get(a.task).contains(a)

  /** Has no effect if Spark has counted another attempt of the task, or if the stage was submitted again. */
  def succeeds(a: Attempt): Stage =
    if (a.stageAttempt != attempt || counted.contains(a.task)) this else copy(counted = counted.updated(a.task, a))

  /** The tasks of the new stage attempt may read other rows, so no result of the older attempt counts. */
  def submittedAgain: Stage = copy(attempt = attempt + 1, counted = Map.empty)
}
