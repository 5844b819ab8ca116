package io.penstock.errors

import org.apache.spark.{BreakingChangeInfo, SparkThrowable}

/**
 * An error that Penstock detects and reports. Spark shows its class as it does for its own errors, and also the
 * SQLSTATE of errors that a user can correct.
 *
 * @param errorClass
 *   stable name, `PENSTOCK_...`, for searching and for tests
 * @param detail
 *   description of what was found, what was expected, and what to do
 */
class PenstockException(val errorClass: String, val detail: String, cause: Throwable = null)
    extends RuntimeException(PenstockException.message(errorClass, detail), cause)
    with SparkThrowable {

  override def getCondition: String = errorClass
  override def getSqlState: String = ErrorConditions.sqlState(errorClass).orNull

  // By default Spark looks these up in its own list of errors.
  override def isInternalError: Boolean = false
  override def getBreakingChangeInfo: BreakingChangeInfo = null
  override def getDefaultMessageTemplate: String = detail
}

private object PenstockException {
  def message(errorClass: String, detail: String): String =
    s"[$errorClass] $detail${ErrorConditions.sqlState(errorClass).fold("")(state => s" SQLSTATE: $state")}"
}
