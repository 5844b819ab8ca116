package org.apache.spark.sql.penstock.integration.cases

import java.sql.Timestamp
import java.time.Duration

import org.apache.spark.sql.penstock.integration.harness.{Engine, Event, OperatorCase, QueryInput}
import org.apache.spark.sql.streaming.OutputMode.{Append, Update}
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TimeMode}
import org.apache.spark.sql.{Dataset, Encoders, KeyValueGroupedDataset}

/** transformWithState with every kind of state variable, timers, time to live, initial state and schema evolution. */
object TransformWithStateCases {
  private val NoTtl = Duration.ZERO
  private val Avro = Map("spark.sql.streaming.stateStore.encodingFormat" -> "avro")

  private def byKey(in: QueryInput): KeyValueGroupedDataset[Long, Event] =
    in.leftEvents.groupByKey(_.key)(Encoders.scalaLong)

  /** The same rows as a DataFrame with a watermark. */
  private def byKeyWatermarked(in: QueryInput): KeyValueGroupedDataset[Long, Event] = {
    import in.session.implicits._
    in.leftWatermarked
      .select("key", "value", "time", "batch", "ts")
      .as[(Long, Long, Long, Long, Timestamp)]
      .groupByKey(_._1)
      .mapValues(row => Event(row._1, row._2, row._3, row._4))
  }

  private def reports(
      rows: KeyValueGroupedDataset[Long, Event],
      processor: StatefulProcessor[Long, Event, StateReport],
      time: TimeMode,
      mode: OutputMode = Update()
  ): Dataset[StateReport] =
    rows.transformWithState(processor, time, mode)(Encoders.product[StateReport])

  private def transform(
      name: String,
      conf: Map[String, String] = Map.empty,
      mode: OutputMode = Update(),
      evidence: Seq[String] = Nil
  )(query: QueryInput => Dataset[_]) =
    OperatorCase(s"transformWithState, $name", mode, stock = Engine.RocksDb, conf = conf, evidence = evidence)(in =>
      query(in).toDF()
    )

  private val variables = transform("value, list and map state")(in =>
    reports(byKey(in), new EveryVariable(Timers.None, NoTtl), TimeMode.None())
  )

  private val processingTimers = transform("processing-time timers", evidence = Seq("timers="))(in =>
    reports(byKey(in), new EveryVariable(Timers.ProcessingTime, NoTtl), TimeMode.ProcessingTime())
  )

  val eventTimers: OperatorCase = transform("event-time timers", evidence = Seq("timers="))(in =>
    reports(byKeyWatermarked(in), new EveryVariable(Timers.EventTime, NoTtl), TimeMode.EventTime())
  )

  private val appendMode = transform("event-time timers, append", mode = Append(), evidence = Seq("timers="))(in =>
    reports(byKeyWatermarked(in), new EveryVariable(Timers.EventTime, NoTtl), TimeMode.EventTime(), Append())
  )

  val timeToLive: OperatorCase = transform(
    "time to live and processing-time timers",
    // Report of a timer that finds no state any more.
    evidence = Seq("values= byRemainder= timers=")
  )(in =>
    reports(byKey(in), new EveryVariable(Timers.ProcessingTime, Duration.ofSeconds(7)), TimeMode.ProcessingTime())
  )

  private val compoundKey = transform("map state with time to live under a case-class key") { in =>
    import in.session.implicits._
    in.leftEvents
      .groupByKey(event => CompoundKey(event.key % 9, s"name ${event.key}"))
      .transformWithState(new CountByNameUnderCompoundKey, TimeMode.ProcessingTime(), Update())
  }

  private val initialState = transform("initial state") { in =>
    import in.session.implicits._
    val initial = (0L until 60L).map(key => (key, key * 100)).toDS().groupByKey(_._1)
    in.leftEvents.groupByKey(_.key).transformWithState(new CountFromInitialState, TimeMode.None(), Update(), initial)
  }

  private val avro = transform("state in avro", Avro)(in =>
    reports(byKey(in), new EveryVariable(Timers.ProcessingTime, NoTtl), TimeMode.ProcessingTime())
  )

  private val schemaEvolution = transform(
    "schema evolution at a restart",
    Avro,
    // A value written by the first version and one written by the second, both read by the second.
    evidence = Seq("v2 Some(None)", "v2 Some(Some(")
  )(in =>
    reports(byKey(in), if (in.run == 0) new CountingV1 else new CountingV2, TimeMode.None())
  )

  val all: Seq[OperatorCase] =
    Seq(
      variables,
      processingTimers,
      eventTimers,
      appendMode,
      timeToLive,
      compoundKey,
      initialState,
      avro,
      schemaEvolution
    )
}
