package io.penstock.errors

/** SQLSTATEs of errors that a user can put right. Spark has the same for its own of the kind (`error-conditions.json`). */
private[penstock] object SqlStates {
  private val NoSuchSetting = "42K0I"
  private val InvalidValue = "22022"
  private val CannotBeSet = "46110"
  private val WrongType = "42K09"
  private val NotInThatState = "55019"
  private val NotSupported = "0A000"
  private val NoSuchRoutine = "42883"
  private val OutOfMemory = "53200"

  val ofUsersErrors: Map[String, String] = Map(
    "PENSTOCK_UNKNOWN_SETTING" -> NoSuchSetting,
    "PENSTOCK_INVALID_SETTING" -> InvalidValue,
    "PENSTOCK_SHARD_COUNT" -> InvalidValue,
    "PENSTOCK_SHARDS_CHANGED" -> InvalidValue,
    "PENSTOCK_STRICT_DISTRIBUTION" -> InvalidValue,
    "PENSTOCK_SETTING_SCOPE" -> CannotBeSet,
    "PENSTOCK_NOT_AT_RUN_TIME" -> CannotBeSet,
    "PENSTOCK_NO_SUCH_KEY" -> WrongType,
    "PENSTOCK_FAMILY_CHANGED" -> WrongType,
    "PENSTOCK_NOT_RUNNING" -> NotInThatState,
    "PENSTOCK_STATE_INCOMPLETE" -> NotInThatState,
    "PENSTOCK_OTHER_QUERY" -> NotInThatState,
    "PENSTOCK_CANNOT_PIN" -> NotSupported,
    "PENSTOCK_CHECKPOINT_FORMAT" -> NotSupported,
    "PENSTOCK_NOT_ENABLED" -> NotSupported,
    "PENSTOCK_UNSUPPORTED_SPARK" -> NotSupported,
    "PENSTOCK_NO_SUCH_PROCEDURE" -> NoSuchRoutine,
    "PENSTOCK_STATE_TOO_LARGE" -> OutOfMemory
  )
}
