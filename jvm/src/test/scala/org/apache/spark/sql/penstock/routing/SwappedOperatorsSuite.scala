package org.apache.spark.sql.penstock.routing

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Literal, PythonUDF}
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TimeMode, TimerValues}
import org.apache.spark.sql.types.{LongType, StructType}

import org.scalatest.funsuite.AnyFunSuite

/** The nodes that replace transformWithState keep all fields, and stay what they are when a rule copies them. */
class SwappedOperatorsSuite extends AnyFunSuite with LocalSpark {
  private val tag = TreeNodeTag[String]("tag")

  private def planned: TransformWithStateExec = {
    val rows = spark.range(4).as[Long](Encoders.scalaLong).groupByKey(identity[Long] _)(Encoders.scalaLong)
    val counts = rows.transformWithState(new SwappedOperatorsSuite.Silent, TimeMode.None(), OutputMode.Append())(
      Encoders.scalaLong
    )
    counts.queryExecution.sparkPlan.collectFirst { case t: TransformWithStateExec => t }.get
  }

  private def inPython: TransformWithStateInPySparkExec = {
    val rows = spark.range(4).queryExecution.sparkPlan
    // Spark 4.3 makes the attributes nullable in `output`, so only then it is equal to the field.
    val output = rows.output.map(_.withNullability(true))
    TransformWithStateInPySparkExec(
      PythonUDF("f", null, LongType, Seq(Literal(1L)), PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF, true),
      rows.output,
      output,
      OutputMode.Append(),
      TimeMode.None(),
      None,
      Some(1L),
      Some(2L),
      Some(3L),
      Some(4L),
      TransformWithStateInPySpark.UserFacingDataType.PANDAS,
      rows,
      isStreaming = true,
      hasInitialState = false,
      rows,
      Nil,
      new StructType().add("id", LongType)
    )
  }

  private def check(plain: SparkPlan, swapped: SparkPlan): Unit = {
    val kind = swapped.getClass
    assert(swapped.productIterator.toSeq == plain.productIterator.toSeq)
    assert(swapped != plain && plain != swapped)
    swapped.setTagValue(tag, "kept")
    val renamed = swapped.transformExpressions { case a: AttributeReference => a.withName("renamed") }
    val moved = swapped.withNewChildren(swapped.children.map(_.clone()))
    Seq(renamed, moved, swapped.clone()).foreach(copy =>
      assert(copy.getClass == kind && copy.getTagValue(tag).contains("kept"))
    )
    assert(renamed.expressions.flatMap(_.collect { case a: Attribute => a.name }).forall(_ == "renamed"))
    assert(swapped.canonicalized.getClass == kind)
  }

  test("transformWithState") {
    val plain = planned
    check(plain, new SwappedTransformWithState(plain))
  }

  test("transformWithState in Python") {
    val plain = inPython
    check(plain, new SwappedTransformWithStateInPySpark(plain))
  }
}

object SwappedOperatorsSuite {
  final private class Silent extends StatefulProcessor[Long, Long, Long] {
    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit = ()
    override def handleInputRows(key: Long, rows: Iterator[Long], timers: TimerValues): Iterator[Long] = Iterator.empty
  }
}
