package org.apache.spark.sql.penstock.integration.harness

/** Whether to leave out what takes minutes and hardly depends on Spark's version; `make ... BRIEF=1`. */
object Brief {
  val isOn: Boolean = sys.props.get("penstock.test.brief").contains("true")

  /** One of two, as the run is brief or not. */
  def orElse[A](brief: A, full: A): A = if (isOn) brief else full

  /** All of them, or every fourth in a brief run, or as often as is said, the first among them. */
  def someOf[A](all: Seq[A], every: Int = 4): Seq[A] = if (isOn) all.grouped(every).map(_.head).toSeq else all
}
