package io.penstock.errors

import org.apache.spark.SparkThrowable

import org.json4s.jackson.JsonMethods
import org.scalatest.funsuite.AnyFunSuite

class PenstockExceptionSuite extends AnyFunSuite {
  test("an error of a user has a SQLSTATE, in its message as Spark's errors have it") {
    val e: SparkThrowable = new PenstockException("PENSTOCK_INVALID_SETTING", "theta is 0.9.")
    assert(e.getCondition == "PENSTOCK_INVALID_SETTING" && e.getSqlState == "22022")
    assert(e.asInstanceOf[Throwable].getMessage == "[PENSTOCK_INVALID_SETTING] theta is 0.9. SQLSTATE: 22022")
  }

  test("every SQLSTATE is one that Spark knows") {
    val resource = getClass.getClassLoader.getResourceAsStream("error/error-states.json")
    val known =
      try JsonMethods.parse(resource).values.asInstanceOf[Map[String, Any]].keySet
      finally resource.close()
    SqlStates.ofUsersErrors.foreach { case (errorClass, state) =>
      assert(errorClass.startsWith("PENSTOCK_") && known(state), errorClass)
    }
  }

  test("an error that is no user's has none, and Spark looks nothing up for it") {
    val e: SparkThrowable = new PenstockException("PENSTOCK_CORRUPT_FILE", "it is damaged", new Exception("cause"))
    assert(e.getSqlState == null && !e.isInternalError && e.getBreakingChangeInfo == null)
    assert(e.getMessageParameters.isEmpty && e.getQueryContext.isEmpty)
    assert(e.asInstanceOf[Throwable].getMessage == "[PENSTOCK_CORRUPT_FILE] it is damaged")
  }
}
