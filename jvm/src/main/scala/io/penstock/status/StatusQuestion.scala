package io.penstock.status

/**
 * A request for the status of the driver's queries.
 *
 * @param batches
 *   number of the newest batches of each run to return
 * @param query
 *   id, run id or name of the only query to return; None for all queries
 */
final case class StatusQuestion(batches: Int, query: Option[String]) {
  def asks(run: RunHistory): Boolean =
    query.forall(q => q == run.id.toString || q == run.runId.toString || run.name.contains(q))
}

object StatusQuestion {

  private val MaxShown = 100

  /** Number of batches if the request does not say how many. */
  val UsualBatches = 20

  /**
   * Reads the parameters of a request.
   *
   * @throws java.lang.IllegalArgumentException
   *   for an invalid parameter, with its value and what is allowed
   */
  def of(parameters: Map[String, String]): StatusQuestion = {
    parameters.keys.find(k => k != "batches" && k != "query").foreach { key =>
      throw new IllegalArgumentException(s"unknown parameter ${shown(key)}; allowed: batches, query")
    }
    val batches = parameters.get("batches").map { text =>
      text.toIntOption.filter(n => n >= 0 && n <= StatusListener.MaxBatches).getOrElse(
        throw new IllegalArgumentException(
          s"batches=${shown(text)} is not allowed; allowed: an integer from 0 to ${StatusListener.MaxBatches}"
        )
      )
    }
    StatusQuestion(batches.getOrElse(UsualBatches), parameters.get("query"))
  }

  private def shown(text: String): String = if (text.length <= MaxShown) text else s"${text.take(MaxShown)}..."
}
