package org.apache.spark.sql.penstock.integration.harness

import scala.collection.mutable

/**
 * Plain Spark's answers, kept for the lifetime of the tests' JVM. Suites that inject faults run the same queries on the
 * same input as others, and the answer does not depend on the application.
 */
private object ReferenceAnswers {
  private val known = mutable.Map.empty[Key, RunResult]

  /** Everything that an answer depends on. A query is a function and is compared by identity. */
  final private case class Key(engine: String, test: OperatorCase, query: AnyRef, steps: Seq[Step])

  /** Returns the known answer, or else the result of `run`. */
  def of(engine: Engine, test: OperatorCase, steps: Seq[Step])(run: => RunResult): RunResult =
    synchronized(known.getOrElseUpdate(Key(engine.name, test, test.query, steps), run.copy(progress = Nil)))
}
