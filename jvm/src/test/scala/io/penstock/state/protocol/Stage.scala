package io.penstock.state.protocol

/**
 * What Spark's scheduler knows of a stage. An action on a batch is one stage here.
 *
 * @param attempt
 *   how often it was submitted again
 * @param started
 *   by task, how many attempts were, those of older stage attempts included
 * @param counted
 *   by task, the attempt that Spark counts: the first to succeed within the newest stage attempt
 */
final case class Stage(attempt: Int = 0, started: Map[Int, Int] = Map.empty, counted: Map[Int, Attempt] = Map.empty)
    extends CachedHash {

  def isOver(tasks: Set[Int]): Boolean = tasks.forall(counted.contains)

  def counts(a: Attempt): Boolean = counted.get(a.task).contains(a)

  /** Without effect where Spark has counted another attempt of the task, or the stage was submitted again. */
  def succeeds(a: Attempt): Stage =
    if (a.stageAttempt != attempt || counted.contains(a.task)) this else copy(counted = counted.updated(a.task, a))

  /** Its tasks read other rows than before, so that no result of the older attempt counts. */
  def submittedAgain: Stage = copy(attempt = attempt + 1, counted = Map.empty)
}
