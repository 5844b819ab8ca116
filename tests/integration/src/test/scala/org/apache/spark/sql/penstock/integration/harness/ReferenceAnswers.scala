package org.apache.spark.sql.penstock.integration.harness

import scala.collection.mutable

/**
 * Plain Spark's answers, kept for as long as the tests' JVM lives: suites that let something fail ask the questions of the
 * others again, with the same input, and the answer does not depend on the application that runs the query.
 */
private object ReferenceAnswers {
  private val known = mutable.Map.empty[Key, RunResult]

  /** What an answer depends on. The query is a function, and is the same where it is the same object. */
  final private case class Key(engine: String, test: OperatorCase, query: AnyRef, steps: Seq[Step])

  /** The answer that is known, or else what `run` gives. */
  def of(engine: Engine, test: OperatorCase, steps: Seq[Step])(run: => RunResult): RunResult =
    synchronized(known.getOrElseUpdate(Key(engine.name, test, test.query, steps), run.copy(progress = Nil)))
}
