package io.penstock.metrics

import io.penstock.telemetry.{RunActivity, StoreActivity, StoreContent}

/** A place where metrics are reported. */
sealed abstract class MetricOutput(val inWords: String)

object MetricOutput {

  /**
   * An output whose metrics are read on demand. A metric is listed there together with the function that reads it, so
   * every metric has a value.
   *
   * @tparam From
   *   type of the object from which the metrics are read
   */
  sealed abstract class Read[From](inWords: String) extends MetricOutput(inWords) {
    def apply(value: From => Long): Found = new Value(this, value)
  }

  /** An output where metrics are registered as counters and gauges. */
  sealed abstract class Registered(inWords: String) extends MetricOutput(inWords) with Found {
    override def output: MetricOutput = this
  }

  /**
   * `stateOperators[].customMetrics` in a batch's progress: values of the batch, summed over an operator's tasks and
   * stores.
   */
  case object Operator extends Read[StoreActivity]("operator")

  /** `observedMetrics["penstock"].stores[]` in a batch's progress: the state of one store after the batch. */
  case object Store extends Read[StoreContent]("store")

  /** `observedMetrics["penstock"].state` in a batch's progress: values since the start of the query's run. */
  case object Run extends Read[RunActivity]("run")

  /** The metrics system of an executor: values over all queries. */
  case object Executor extends Registered("executor")

  /** The metrics system of the driver: values over all queries. */
  case object Driver extends Registered("driver")
}

/** The presence of a metric at an output. */
sealed trait Found {
  def output: MetricOutput
}

/** Reads a metric at an output. */
final private[metrics] class Value[From](override val output: MetricOutput.Read[From], val read: From => Long)
    extends Found

/** Unit of a metric. */
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
 *   whether the metrics system shows a counter that only grows since the start of the JVM; otherwise it shows the
 *   current value
 */
final case class Metric(name: String, unit: MetricUnit, grows: Boolean, found: Seq[Found], meaning: String) {
  def outputs: Set[MetricOutput] = found.map(_.output).toSet

  /** Name without the prefix, for records that are already named after Penstock. */
  def field: String = {
    val rest = name.stripPrefix(Metrics.Prefix)
    s"${rest.head.toLower}${rest.tail}"
  }
}
