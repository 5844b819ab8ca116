package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TimeMode}
import org.apache.spark.sql.types.StructType

/** Spark's transformWithState without its check that the state store provider is the RocksDB provider. */
final class SwappedTransformWithState(
    keyDeserializer: Expression,
    valueDeserializer: Expression,
    groupingAttributes: Seq[Attribute],
    dataAttributes: Seq[Attribute],
    statefulProcessor: StatefulProcessor[Any, Any, Any],
    timeMode: TimeMode,
    outputMode: OutputMode,
    keyEncoder: ExpressionEncoder[Any],
    outputObjAttr: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    batchTimestampMs: Option[Long],
    prevBatchTimestampMs: Option[Long],
    eventTimeWatermarkForLateEvents: Option[Long],
    eventTimeWatermarkForEviction: Option[Long],
    child: SparkPlan,
    isStreaming: Boolean,
    isRealTimeMode: Boolean,
    hasInitialState: Boolean,
    initialStateGroupingAttrs: Seq[Attribute],
    initialStateDataAttrs: Seq[Attribute],
    initialStateDeserializer: Expression,
    initialState: SparkPlan
) extends TransformWithStateExec(
      keyDeserializer,
      valueDeserializer,
      groupingAttributes,
      dataAttributes,
      statefulProcessor,
      timeMode,
      outputMode,
      keyEncoder,
      outputObjAttr,
      stateInfo,
      batchTimestampMs,
      prevBatchTimestampMs,
      eventTimeWatermarkForLateEvents,
      eventTimeWatermarkForEviction,
      child,
      isStreaming,
      isRealTimeMode,
      hasInitialState,
      initialStateGroupingAttrs,
      initialStateDataAttrs,
      initialStateDeserializer,
      initialState
    ) {

  override def validateStateStoreProvider(isStreaming: Boolean): Unit = ()

  override protected def withNewChildrenInternal(left: SparkPlan, right: SparkPlan): TransformWithStateExec =
    SwappedTransformWithState(copy(child = left, initialState = if (hasInitialState) right else initialState))

  // A plain node must not equal this one, because tree transformations keep the old node if the new one is equal.
  override def canEqual(other: Any): Boolean = other.isInstanceOf[SwappedTransformWithState]
  override def equals(other: Any): Boolean = other.isInstanceOf[SwappedTransformWithState] && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}

object SwappedTransformWithState {
  def apply(t: TransformWithStateExec): SwappedTransformWithState = new SwappedTransformWithState(
    t.keyDeserializer,
    t.valueDeserializer,
    t.groupingAttributes,
    t.dataAttributes,
    t.statefulProcessor,
    t.timeMode,
    t.outputMode,
    t.keyEncoder,
    t.outputObjAttr,
    t.stateInfo,
    t.batchTimestampMs,
    t.prevBatchTimestampMs,
    t.eventTimeWatermarkForLateEvents,
    t.eventTimeWatermarkForEviction,
    t.child,
    t.isStreaming,
    t.isRealTimeMode,
    t.hasInitialState,
    t.initialStateGroupingAttrs,
    t.initialStateDataAttrs,
    t.initialStateDeserializer,
    t.initialState
  )
}

/** PySpark's transformWithState without the check that the state store provider is the RocksDB provider. */
final class SwappedTransformWithStateInPySpark(
    functionExpr: Expression,
    groupingAttributes: Seq[Attribute],
    output: Seq[Attribute],
    outputMode: OutputMode,
    timeMode: TimeMode,
    stateInfo: Option[StatefulOperatorStateInfo],
    batchTimestampMs: Option[Long],
    prevBatchTimestampMs: Option[Long],
    eventTimeWatermarkForLateEvents: Option[Long],
    eventTimeWatermarkForEviction: Option[Long],
    userFacingDataType: TransformWithStateInPySpark.UserFacingDataType.Value,
    child: SparkPlan,
    isStreaming: Boolean,
    hasInitialState: Boolean,
    initialState: SparkPlan,
    initialStateGroupingAttrs: Seq[Attribute],
    initialStateSchema: StructType
) extends TransformWithStateInPySparkExec(
      functionExpr,
      groupingAttributes,
      output,
      outputMode,
      timeMode,
      stateInfo,
      batchTimestampMs,
      prevBatchTimestampMs,
      eventTimeWatermarkForLateEvents,
      eventTimeWatermarkForEviction,
      userFacingDataType,
      child,
      isStreaming,
      hasInitialState,
      initialState,
      initialStateGroupingAttrs,
      initialStateSchema
    ) {

  override def validateStateStoreProvider(isStreaming: Boolean): Unit = ()

  override protected def withNewChildrenInternal(left: SparkPlan, right: SparkPlan): TransformWithStateInPySparkExec =
    SwappedTransformWithStateInPySpark(
      copy(child = left, initialState = if (hasInitialState) right else initialState)
    )

  override def canEqual(other: Any): Boolean = other.isInstanceOf[SwappedTransformWithStateInPySpark]
  override def equals(other: Any): Boolean =
    other.isInstanceOf[SwappedTransformWithStateInPySpark] && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}

object SwappedTransformWithStateInPySpark {
  def apply(t: TransformWithStateInPySparkExec): SwappedTransformWithStateInPySpark =
    new SwappedTransformWithStateInPySpark(
      t.functionExpr,
      t.groupingAttributes,
      t.output,
      t.outputMode,
      t.timeMode,
      t.stateInfo,
      t.batchTimestampMs,
      t.prevBatchTimestampMs,
      t.eventTimeWatermarkForLateEvents,
      t.eventTimeWatermarkForEviction,
      t.userFacingDataType,
      t.child,
      t.isStreaming,
      t.hasInitialState,
      t.initialState,
      t.initialStateGroupingAttrs,
      t.initialStateSchema
    )
}
