package io.penstock.state.protocol

import org.scalatest.funsuite.AnyFunSuite

/** Assertions for searches of models. */
abstract class ModelSuite extends AnyFunSuite {

  /**
   * Checks that no property is violated, and that the model still reaches all the steps that its bounds are meant for.
   */
  protected def assertRight[S](found: Search[S], states: Int, steps: Seq[String]): Unit = {
    info(s"${found.states.size} states")
    assert(found.wrong.isEmpty)
    assert(found.states.size >= states)
    steps.foreach(step => assert(found.kinds.exists(_.contains(step)), step))
  }

  /** Checks that the shortest trace contains these steps in order and ends with the last one. */
  protected def assertWrong[S](found: Search[S], violation: String, steps: Seq[String]): Unit = {
    assert(found.wrong.isDefined)
    found.wrong.foreach { w =>
      info((w.violation +: w.trace).mkString("\n    "))
      assert(w.violation.contains(violation))
      val rest = steps.foldLeft(w.trace) { (trace, step) =>
        val from = trace.dropWhile(!_.contains(step))
        assert(from.nonEmpty, s"'$step' is missing in this place of the trace")
        from.drop(1)
      }
      assert(rest.isEmpty, "the trace continues after the last step")
    }
  }
}
