package org.apache.spark.sql.penstock.integration.chaos

import java.util.SplittableRandom

import scala.util.Random

import org.apache.spark.sql.penstock.integration.harness.Engine

/** Random settings for each start of a query. None of them may change an answer. */
object StartSettings {

  private val Choices = Seq(
    "spark.penstock.theta" -> Seq("1.003", "1.5", "10"),
    "spark.penstock.state.inlineBytes" -> Seq("0", "4m"),
    "spark.penstock.state.snapshotBytes" -> Seq("1", "64m"),
    "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> Seq("1", "2", "10"),
    "spark.sql.streaming.minBatchesToRetain" -> Seq("1", "2", "100"),
    "spark.sql.codegen.wholeStage" -> Seq("true", "false"),
    // Has no effect after the first start, because the checkpoint stores the number.
    Engine.PartitionsKey -> Seq("1", "7", "200")
  )

  def keys: Seq[String] = Choices.map(_._1)

  def of(seed: Long, start: Int): Map[String, String] = {
    val random = new Random(new SplittableRandom(~seed ^ (start.toLong << 40)).nextLong())
    Choices.map { case (key, values) => key -> values(random.nextInt(values.size)) }.toMap
  }
}
