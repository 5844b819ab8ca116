package io.penstock.errors

import org.apache.spark.SparkThrowable

import org.json4s.jackson.JsonMethods
import org.scalatest.funsuite.AnyFunSuite

class PenstockExceptionSuite extends AnyFunSuite {
  test("a user error has a SQLSTATE, formatted in its message as in Spark's errors") {
    val e: SparkThrowable = new PenstockException("PENSTOCK_INVALID_SETTING", "theta is 0.9.")
    assert(e.getCondition == "PENSTOCK_INVALID_SETTING" && e.getSqlState == "22022")
    assert(e.asInstanceOf[Throwable].getMessage == "[PENSTOCK_INVALID_SETTING] theta is 0.9. SQLSTATE: 22022")
  }

  test("every SQLSTATE is known to Spark") {
    val resource = getClass.getClassLoader.getResourceAsStream("error/error-states.json")
    val known =
      try JsonMethods.parse(resource).values.asInstanceOf[Map[String, Any]].keySet
      finally resource.close()
    val states = ErrorConditions.all.flatMap { case (errorClass, c) => c.sqlState.map(errorClass -> _) }
    assert(states.nonEmpty)
    states.foreach { case (errorClass, state) =>
      assert(errorClass.startsWith("PENSTOCK_") && known(state), errorClass)
    }
  }

  test("an internal error has no SQLSTATE and is not looked up in Spark's error classes") {
    val e: SparkThrowable = new PenstockException("PENSTOCK_CORRUPT_FILE", "it is damaged", new Exception("cause"))
    assert(e.getSqlState == null && !e.isInternalError && e.getBreakingChangeInfo == null)
    assert(e.getMessageParameters.isEmpty && e.getQueryContext.isEmpty)
    assert(e.asInstanceOf[Throwable].getMessage == "[PENSTOCK_CORRUPT_FILE] it is damaged")
  }
}
