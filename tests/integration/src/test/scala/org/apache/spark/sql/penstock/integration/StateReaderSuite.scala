package org.apache.spark.sql.penstock.integration

import java.nio.file.Path

import scala.collection.mutable

import org.apache.spark.sql.functions._
import org.apache.spark.sql.penstock.integration.cases._
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.{DataFrame, Row}

import org.scalatest.funsuite.AnyFunSuite

/** `spark.read.format("statestore")` shows the same for a checkpoint of Penstock as for one of plain Spark. */
class StateReaderSuite extends AnyFunSuite with PenstockApplication {
  import StateReaderSuite._

  override protected def applicationConf: Map[String, String] = super.applicationConf ++ ForeignNodes.Conf

  private val known = mutable.Map.empty[String, Played]

  /** Plays a case with both engines. Tests only read checkpoints, so a case is played once. */
  private def playedBoth(operatorCase: OperatorCase): Played = known.getOrElseUpdate(
    operatorCase.name, {
      val seed = TestSeed.of(operatorCase.name)
      val engines = EnginePair.of(operatorCase.stock, operatorCase.shards, seed)
      val (expected, found) = SideBySide(
        checkpointOf(engines.reference, operatorCase, seed),
        checkpointOf(engines.subject, operatorCase, seed)
      )
      Played(engines, expected, found)
    }
  )

  private def checkpointOf(engine: Engine, operatorCase: OperatorCase, seed: Long): Path = {
    val checkpoint = newDirectory("checkpoint")
    new QueryRun(application, engine, operatorCase, checkpoint).play(Script.standard(seed, operatorCase.twoInputs))
    checkpoint
  }

  private def read(checkpoint: Path, options: Map[String, String]): DataFrame =
    application.newSession().read.format("statestore").options(options).load(checkpoint.toString)

  private def content(state: DataFrame): Seq[String] =
    state.drop("partition_id").collect().map(Rendering.of).sorted.toSeq

  private def compare(operatorCase: OperatorCase)(options: Map[String, String]*): Unit = {
    options.foreach { chosen =>
      val label =
        if (chosen.isEmpty) "" else chosen.map { case (key, value) => s"$key=$value" }.mkString(", ", ", ", "")
      test(operatorCase.name + label)(withClue(TestSeed.clue) {
        val played = playedBoth(operatorCase)
        val reference = content(read(played.expected, chosen))
        assert(reference.nonEmpty)
        assert(content(read(played.found, chosen)) == reference)
        assertDividedByShard(read(played.found, chosen), played.engines.subject.partitions, reference.size)
      })
    }
  }

  /** Checks that every row is in one shard, and that reading the shards separately gives all rows. */
  private def assertDividedByShard(state: DataFrame, shards: Int, rows: Int): Unit = {
    val perShard = state.groupBy("partition_id").count().collect().map(row => row.getInt(0) -> row.getLong(1)).toMap
    assert(perShard.keys.forall(shard => shard >= 0 && shard < shards))
    assert(perShard.size > shards / 4, "shards that hold a row")
    assert(perShard.values.sum == rows)
    // The shards are small, so they are read by no more tasks than run at the same time.
    assert(state.rdd.getNumPartitions == math.min(shards, application.sparkContext.defaultParallelism))
  }

  /** As [[checkpointOf]], by a run that ends with pinned keys. The seed determines which keys. */
  private def checkpointWithPins(operatorCase: OperatorCase, seed: Long): (Path, Engine) = {
    val engines =
      Iterator.from(0).take(10).map(i => EnginePair.of(operatorCase.stock, operatorCase.shards, seed + i).subject)
    engines.map(e => checkpointOf(e, operatorCase, seed) -> e).find(found => PinnedKeys.count(found._1) > 0).getOrElse(
      fail("ten runs ended without a pinned key")
    )
  }

  private def variable(name: String, flatten: Boolean = true) =
    Map("stateVarName" -> name, "flattenCollectionTypes" -> flatten.toString)

  compare(AggregationCases.updateMode)(Map.empty[String, String])
  compare(DeduplicationCases.unbounded)(Map.empty[String, String])
  compare(SessionWindowCases.appendMode)(Map.empty[String, String])
  compare(GroupsWithStateCases.initialState)(Map.empty[String, String])
  compare(StreamJoinCases.inner)(Map("joinSide" -> "left"), Map("joinSide" -> "right"))
  // A limit ends tasks before their last shard. The state of all shards is complete nevertheless.
  compare(PartitionCases.someOfBetween)(Map("operatorId" -> "0"), Map("operatorId" -> "1"))
  compare(TransformWithStateCases.eventTimers)(
    variable("rowCount"),
    variable("values"),
    variable("byRemainder"),
    variable("byRemainder", flatten = false),
    Map("readRegisteredTimers" -> "true")
  )

  for {
    (operatorCase, options, key) <- Seq(
      (AggregationCases.updateMode, Map.empty[String, String], "key.key"),
      (TransformWithStateCases.eventTimers, variable("values"), "key.value")
    )
  } test(s"${operatorCase.name}: a pinned key is shown in its base shard")(withClue(TestSeed.clue) {
    val seed = TestSeed.of(operatorCase.name)
    val (checkpoint, engine) = checkpointWithPins(operatorCase, seed)
    val found = read(checkpoint, options)
    assert(content(found) == content(read(playedBoth(operatorCase).expected, options)))
    assert(found.filter(expr(s"partition_id <> pmod(hash($key), ${engine.partitions})")).count() == 0)
  })

  for (operatorCase <- Seq(AggregationCases.updateMode, StreamJoinCases.inner, TransformWithStateCases.eventTimers)) {
    test(s"${operatorCase.name}, state-metadata: as plain Spark's, except for the number of partitions")(
      withClue(TestSeed.clue) {
        val played = playedBoth(operatorCase)
        def metadata(engine: Engine, checkpoint: Path): Seq[Row] = {
          val rows = application.newSession().read.format("state-metadata").load(checkpoint.toString)
          assert(rows.select("numPartitions").distinct().collect().map(_.getInt(0)).toSeq == Seq(engine.partitions))
          rows.drop("numPartitions").collect().toSeq.sortBy(_.toString)
        }
        val expected = metadata(played.engines.reference, played.expected)
        assert(expected.nonEmpty && metadata(played.engines.subject, played.found) == expected)
      }
    )
  }

  /** Checks that the change feed up to each batch gives what the reader shows for that batch. */
  private def follow(operatorCase: OperatorCase)(options: Map[String, String]*): Unit = {
    options.foreach { chosen =>
      test(s"${operatorCase.name}, change feed, ${chosen.mkString(", ")}")(withClue(TestSeed.clue) {
        val checkpoint = playedBoth(operatorCase).found
        val feed = read(checkpoint, chosen ++ Map("readChangeFeed" -> "true", "changeStartBatchId" -> "0")).collect()
        val batches = feed.map(_.getLong(0)).distinct.sorted
        assert(batches.length > 3)
        assert(feed.exists(_.getString(1) != "delete"))
        batches.foreach { batch =>
          val content = this.content(read(checkpoint, chosen + ("batchId" -> batch.toString)))
          assert(folded(feed.toSeq.filter(_.getLong(0) <= batch)) == content, s"batch $batch")
        }
      })
    }
  }

  follow(AggregationCases.updateMode)(Map.empty[String, String])
  follow(DeduplicationCases.withWatermark)(Map.empty[String, String])
  follow(TransformWithStateCases.eventTimers)(variable("rowCount"), variable("values"), variable("byRemainder"))

  test("snapshotStartBatchId gives the same state from any retained batch and the changes since") {
    val checkpoint = playedBoth(TransformWithStateCases.eventTimers).found
    val variable = this.variable("values")
    val state = read(checkpoint, variable)
    val shard = state.groupBy("partition_id").count().orderBy(desc("count")).first().getInt(0)
    val expected = content(state.filter(s"partition_id = $shard"))
    def from(batch: Long) = content(read(
      checkpoint,
      variable ++ Map("snapshotStartBatchId" -> batch.toString, "snapshotPartitionId" -> shard.toString)
    ))
    val batches = QueryRun.committed(checkpoint)
    assert(batches.size > 5 && expected.nonEmpty)
    batches.foreach(batch => assert(from(batch) == expected, s"from batch $batch"))
  }

  test("a row is in the shard of its key's hash") {
    val played = playedBoth(AggregationCases.updateMode)
    val state = read(played.found, Map.empty)
    val elsewhere = state.filter(expr(s"partition_id <> pmod(hash(key.key), ${played.engines.subject.partitions})"))
    assert(elsewhere.count() == 0)
    assert(state.count() > 0)
  }
}

private object StateReaderSuite {

  /** Checkpoints of a case, by plain Spark (expected) and by Penstock (found). */
  final case class Played(engines: EnginePair, expected: Path, found: Path)

  /** Applies a change feed. Returns one row of key and value for each entry, as the state reader shows them. */
  def folded(feed: Seq[Row]): Seq[String] = {
    val values = mutable.LinkedHashMap.empty[Seq[Any], Vector[Any]]
    feed.foreach { row =>
      val cells = row.toSeq
      val (key, value) = (cells.slice(2, cells.size - 2), cells(cells.size - 2))
      row.getString(1) match {
        case "update" => values(key) = Vector(value)
        case "append" => values(key) = values.getOrElse(key, Vector.empty) :+ value
        case "delete" => values.remove(key)
      }
    }
    values.toSeq.flatMap { case (key, all) => all.map(value => Rendering.of(Row.fromSeq(key :+ value))) }.sorted
  }
}
