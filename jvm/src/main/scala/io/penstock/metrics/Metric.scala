package io.penstock.metrics

/** Where a metric is found. */
sealed abstract class Place(val inWords: String)

object Place {

  /** `stateOperators[].customMetrics` in a batch's progress: of the batch, added up over tasks and stores of an operator. */
  case object Operator extends Place("operator")

  /** `observedMetrics["penstock"].stores[]` in a batch's progress: of the state after the batch, for one store. */
  case object Store extends Place("store")

  /** `observedMetrics["penstock"].state` in a batch's progress: of the query's run since it began. */
  case object Run extends Place("run")

  /** The metrics system of an executor: over all queries. */
  case object Executor extends Place("executor")

  /** The metrics system of the driver: over all queries. */
  case object Driver extends Place("driver")
}

/** What a metric counts. */
sealed abstract class MetricUnit(val inWords: String)

object MetricUnit {
  case object Count extends MetricUnit("count")
  case object Bytes extends MetricUnit("bytes")
  case object Milliseconds extends MetricUnit("ms")
  case object Batches extends MetricUnit("batches")
}

/**
 * A number that Penstock reports.
 *
 * @param grows
 *   in the metrics system: whether it only grows, from the start of the JVM on; else it is as it is now
 */
final case class Metric(name: String, unit: MetricUnit, grows: Boolean, places: Set[Place], meaning: String) {

  /** Name in a record whose own name says that it is Penstock's. */
  def field: String = {
    val rest = name.stripPrefix(Metrics.Prefix)
    s"${rest.head.toLower}${rest.tail}"
  }
}
