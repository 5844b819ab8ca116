package io.penstock.errors

import org.apache.spark.{BreakingChangeInfo, SparkThrowable}

/**
 * An error that Penstock raises on purpose. Spark tells its class, and the SQLSTATE of what a user can put right, as of its
 * own errors.
 *
 * @param errorClass
 *   stable name, `PENSTOCK_...`, for searching and for tests
 * @param detail
 *   what was found, what was expected, and what to do
 */
class PenstockException(val errorClass: String, val detail: String, cause: Throwable = null)
    extends RuntimeException(PenstockException.message(errorClass, detail), cause)
    with SparkThrowable {

  override def getCondition: String = errorClass
  override def getSqlState: String = SqlStates.ofUsersErrors.get(errorClass).orNull

  // Spark would look these up among its own errors.
  override def isInternalError: Boolean = false
  override def getBreakingChangeInfo: BreakingChangeInfo = null
  override def getDefaultMessageTemplate: String = detail
}

private object PenstockException {
  def message(errorClass: String, detail: String): String =
    s"[$errorClass] $detail${SqlStates.ofUsersErrors.get(errorClass).fold("")(state => s" SQLSTATE: $state")}"
}
