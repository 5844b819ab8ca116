package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.OutputMode.{Complete, Update}

/** State in plans with nodes that change partitions, or whose handling of partitions Penstock does not know. */
object PartitionCases {
  private def counts(rows: DataFrame): DataFrame = rows.groupBy("key").agg(count("*").as("n"))

  private val top =
    OperatorCase("aggregation, the first ten in order", Complete(), equivalence = Equivalence.SameOrder)(in =>
      counts(in.left).orderBy(desc("n"), col("key")).limit(10)
    )

  private val limited =
    OperatorCase("aggregation, ten of the rows", Complete(), equivalence = Equivalence.SameCounts)(in =>
      counts(in.left).limit(10)
    )

  private val limitedTwice =
    OperatorCase(
      "aggregation, ten of the rows, joined, twenty of these",
      Complete(),
      equivalence = Equivalence.SameCounts
    )(in =>
      counts(in.left).limit(10).crossJoin(broadcast(in.session.range(3).toDF("i"))).limit(20)
    )

  /** Spark 4.3 has an operator for this. Other versions ignore the setting. */
  private val rowByRow = OperatorCase(
    "aggregation that hands over a row for each that comes in",
    Update(),
    conf = Map("spark.sql.streaming.useStreamlineAggregator" -> "true")
  )(in => counts(in.left))

  private def foreign(where: String): Map[String, String] = Map(ForeignNodes.Key -> where)

  private val above =
    OperatorCase("aggregation below a node that is not known", Update(), conf = foreign("above"))(in =>
      counts(in.left)
    )

  val below: OperatorCase =
    OperatorCase("aggregation above a node that is not known", Update(), conf = foreign("below"))(in => counts(in.left))

  val joinBelow: OperatorCase = OperatorCase(
    "join of two window aggregations above nodes that are not known",
    CompositionCases.aggregationsThenJoin.mode,
    stock = CompositionCases.aggregationsThenJoin.stock,
    conf = foreign("below"),
    twoInputs = true
  )(CompositionCases.aggregationsThenJoin.query)

  /** The order of rows is that of the partitions, which run one after the other. */
  private val cachedInOrder = OperatorCase(
    "aggregation, sort-merge joined with a cached table in order",
    Update(),
    conf = Map("spark.sql.autoBroadcastJoinThreshold" -> "-1")
  ) { in =>
    import in.session.implicits._
    val partitions = in.session.conf.get(Engine.PartitionsKey).toInt
    val names = (0L until 30L).map(key => (key, s"name $key")).toDF("key", "name")
    counts(in.left).join(names.repartition(partitions, col("key")).sortWithinPartitions("key").cache(), "key")
  }

  private def dedupThenCounts(in: QueryInput): DataFrame =
    in.left.select("key", "value").dropDuplicates("key", "value").groupBy("key", "value").agg(count("*").as("n"))

  /** Both operators of the stage must see the partitions that the node sees. */
  val between: OperatorCase = OperatorCase(
    "dropDuplicates and aggregation with a node between them that is not known",
    Update(),
    conf = foreign("between"),
    unrouted = Some("OpaqueExec")
  )(dedupThenCounts)

  private val handingOver =
    OperatorCase(
      "dropDuplicates and aggregation with a node between them that hands rows over",
      Update(),
      conf = foreign(ForeignNodes.HandingOver)
    )(dedupThenCounts)

  /** A limit ends a partition after its first rows. */
  val someOfBetween: OperatorCase = between.copy(
    name = "dropDuplicates and aggregation with a node between them that is not known, ten of the rows",
    mode = Complete(),
    equivalence = Equivalence.SameCounts
  )(dedupThenCounts(_).limit(10))

  /** Spark sorts the partitions of the few tasks. */
  private val betweenInOrder = between.copy(
    name = "dropDuplicates and aggregation with a node between them that is not known, in order",
    mode = Complete(),
    equivalence = Equivalence.SameOrder
  )(dedupThenCounts(_).sortWithinPartitions("value").orderBy("key", "value"))

  val all: Seq[OperatorCase] = Seq(top, limited, limitedTwice, rowByRow, above, below, joinBelow, cachedInOrder) ++
    Seq(handingOver, between, someOfBetween, betweenInOrder)
}
