package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.penstock.shims.VersionedTransformWithState

/** Spark's transformWithState without its check that the state store provider is the RocksDB provider. */
final class SwappedTransformWithState(node: TransformWithStateExec)
    extends VersionedTransformWithState(node)
    with MadeFromPlain {

  override def validateStateStoreProvider(isStreaming: Boolean): Unit = ()

  override protected def withNewChildrenInternal(left: SparkPlan, right: SparkPlan): TransformWithStateExec =
    new SwappedTransformWithState(copy(child = left, initialState = if (hasInitialState) right else initialState))

  override protected def plain: SparkPlan = copy()

  // A plain node must not equal this one, because tree transformations keep the old node if the new one is equal.
  override def canEqual(other: Any): Boolean = other.isInstanceOf[SwappedTransformWithState]
  override def equals(other: Any): Boolean = other.isInstanceOf[SwappedTransformWithState] && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}

/** PySpark's transformWithState without the check that the state store provider is the RocksDB provider. */
final class SwappedTransformWithStateInPySpark(node: TransformWithStateInPySparkExec)
    extends TransformWithStateInPySparkExec(
      node.functionExpr,
      node.groupingAttributes,
      // In Spark 4.3 the field with the nullable attributes that `output` makes of it, which changes nothing again.
      node.output,
      node.outputMode,
      node.timeMode,
      node.stateInfo,
      node.batchTimestampMs,
      node.prevBatchTimestampMs,
      node.eventTimeWatermarkForLateEvents,
      node.eventTimeWatermarkForEviction,
      node.userFacingDataType,
      node.child,
      node.isStreaming,
      node.hasInitialState,
      node.initialState,
      node.initialStateGroupingAttrs,
      node.initialStateSchema
    )
    with MadeFromPlain {

  override def validateStateStoreProvider(isStreaming: Boolean): Unit = ()

  override protected def withNewChildrenInternal(left: SparkPlan, right: SparkPlan): TransformWithStateInPySparkExec =
    new SwappedTransformWithStateInPySpark(
      copy(child = left, initialState = if (hasInitialState) right else initialState)
    )

  override protected def plain: SparkPlan = copy()

  override def canEqual(other: Any): Boolean = other.isInstanceOf[SwappedTransformWithStateInPySpark]
  override def equals(other: Any): Boolean =
    other.isInstanceOf[SwappedTransformWithStateInPySpark] && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}
