package io.penstock.metrics

import io.penstock.telemetry.{RunActivity, StoreActivity, StoreContent}

/** Where a metric is found. */
sealed abstract class MetricOutput(val inWords: String)

object MetricOutput {

  /**
   * An output where metrics are read whenever somebody looks. A metric is there with what reads it, so none is without a value.
   *
   * @tparam From
   *   what they are read from
   */
  sealed abstract class Read[From](inWords: String) extends MetricOutput(inWords) {
    def apply(value: From => Long): Found = new Value(this, value)
  }

  /** An output where metrics are registered, as counters and gauges of their own. */
  sealed abstract class Registered(inWords: String) extends MetricOutput(inWords) with Found {
    override def output: MetricOutput = this
  }

  /** `stateOperators[].customMetrics` in a batch's progress: of the batch, added up over tasks and stores of an operator. */
  case object Operator extends Read[StoreActivity]("operator")

  /** `observedMetrics["penstock"].stores[]` in a batch's progress: of the state after the batch, for one store. */
  case object Store extends Read[StoreContent]("store")

  /** `observedMetrics["penstock"].state` in a batch's progress: of the query's run since it began. */
  case object Run extends Read[RunActivity]("run")

  /** The metrics system of an executor: over all queries. */
  case object Executor extends Registered("executor")

  /** The metrics system of the driver: over all queries. */
  case object Driver extends Registered("driver")
}

/** A metric's being at an output. */
sealed trait Found {
  def output: MetricOutput
}

/** What reads a metric at an output. */
final private[metrics] class Value[From](override val output: MetricOutput.Read[From], val of: From => Long)
    extends Found

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
final case class Metric(name: String, unit: MetricUnit, grows: Boolean, found: Seq[Found], meaning: String) {
  def outputs: Set[MetricOutput] = found.map(_.output).toSet

  /** Name in a record whose own name says that it is Penstock's. */
  def field: String = {
    val rest = name.stripPrefix(Metrics.Prefix)
    s"${rest.head.toLower}${rest.tail}"
  }
}
