package org.apache.spark.sql.penstock.integration.harness

/** Whether to skip tests that take minutes and hardly depend on Spark's version, as with `make ... BRIEF=1`. */
object Brief {
  val isOn: Boolean = sys.props.get("penstock.test.brief").contains("true")

  /** The first value in a brief run, otherwise the second one. */
  def orElse[A](brief: A, full: A): A = if (isOn) brief else full

  /** All elements, or in a brief run the first of every `every` elements. */
  def someOf[A](all: Seq[A], every: Int = 4): Seq[A] = if (isOn) all.grouped(every).map(_.head).toSeq else all
}
