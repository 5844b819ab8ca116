package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness.{Engine, Equivalence, OperatorCase, QueryInput}
import org.apache.spark.sql.streaming.OutputMode.{Complete, Update}

/** Aggregations whose stage is fed or followed by exchanges that other operators require. */
object ExchangeCases {
  private val SortMergeJoin = Map("spark.sql.autoBroadcastJoinThreshold" -> "-1")

  /** A static table with a name for some of the keys. */
  private def names(in: QueryInput): DataFrame = {
    import in.session.implicits._
    (0L until 30L).map(key => (key, s"name $key")).toDF("key", "name")
  }

  private def counts(rows: DataFrame): DataFrame = rows.groupBy("key").agg(count("*").as("n"))

  private val joinedAbove =
    OperatorCase("aggregation, sort-merge joined with a table", Update(), conf = SortMergeJoin)(in =>
      counts(in.left).join(names(in), "key")
    )

  private val broadcastAbove = OperatorCase("aggregation, joined with a broadcast table", Update())(in =>
    counts(in.left).join(broadcast(names(in)), "key")
  )

  val joinedBelow: OperatorCase =
    OperatorCase("sort-merge join with a table, then aggregation by the same key", Update(), conf = SortMergeJoin)(in =>
      in.left.join(names(in), "key").groupBy("key").agg(count("*"), max("name"))
    )

  private val outerJoinedBelow =
    OperatorCase("outer join with a table, then aggregation by its column", Update(), conf = SortMergeJoin)(in =>
      in.left.join(names(in), Seq("key"), "left_outer").groupBy("name").agg(count("*"))
    )

  /** The cached table is already partitioned as the join requires, so no exchange is left that could be routed. */
  private val joinedWithCached = OperatorCase(
    "aggregation, sort-merge joined with a cached table",
    Update(),
    conf = SortMergeJoin,
    shards = 6
  ) { in =>
    val partitions = in.session.conf.get(Engine.PartitionsKey).toInt
    counts(in.left).join(names(in).repartition(partitions, col("key")).cache(), "key")
  }

  private val repartitionedBelow =
    OperatorCase("repartition by the key into as many partitions, then aggregation", Update())(in =>
      counts(in.left.repartition(in.session.conf.get(Engine.PartitionsKey).toInt, col("key")))
    )

  private val repartitionedOtherwiseBelow =
    OperatorCase("repartition by the key into other partitions, then aggregation", Update())(in =>
      counts(in.left.repartition(7, col("key")))
    )

  private val coalesced = OperatorCase("aggregation, then coalesce", Update())(in => counts(in.left).coalesce(1))

  private val coalescedToTwo =
    OperatorCase("aggregation, then coalesce to two", Update())(in => counts(in.left).coalesce(2))

  private val repartitioned =
    OperatorCase("aggregation, then repartition", Update())(in => counts(in.left).repartition(7, col("n")))

  private val ordered =
    OperatorCase(
      "aggregation, then order within partitions and in all",
      Complete(),
      equivalence = Equivalence.SameOrder
    )(in => counts(in.left).sortWithinPartitions("n").orderBy(desc("n"), col("key")))

  val all: Seq[OperatorCase] =
    Seq(joinedAbove, broadcastAbove, joinedBelow, outerJoinedBelow, joinedWithCached, repartitionedBelow) ++
      Seq(repartitionedOtherwiseBelow, coalesced, coalescedToTwo, repartitioned, ordered)
}
