package io.penstock.state.protocol

import org.scalatest.funsuite.AnyFunSuite

/** What suites of models have in common. */
abstract class ModelSuite extends AnyFunSuite {

  /** A model that no longer goes everywhere says nothing, nor one where what its bounds are for never happens. */
  protected def assertRight[S](found: Search[S], states: Int, steps: Seq[String]): Unit = {
    info(s"${found.states.size} states")
    assert(found.wrong.isEmpty)
    assert(found.states.size >= states)
    steps.foreach(step => assert(found.kinds.exists(_.contains(step)), step))
  }

  /** The shortest trace has these steps, in order, and ends with the last one. */
  protected def assertWrong[S](found: Search[S], what: String, steps: Seq[String]): Unit = {
    assert(found.wrong.isDefined)
    found.wrong.foreach { w =>
      info((w.what +: w.trace).mkString("\n    "))
      assert(w.what.contains(what))
      val rest = steps.foldLeft(w.trace) { (trace, step) =>
        val from = trace.dropWhile(!_.contains(step))
        assert(from.nonEmpty, s"'$step' does not follow")
        from.drop(1)
      }
      assert(rest.isEmpty, "the trace goes on")
    }
  }
}
