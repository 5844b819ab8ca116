package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate._
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python._
import org.apache.spark.sql.execution.python.streaming.{
  FlatMapGroupsInPandasWithStateExec,
  TransformWithStateInPySparkExec
}
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec

/**
 * Plan nodes of which it is known that partition p of the output is made of partition p of every zipped input, whatever
 * the number of partitions. A node that is not listed makes its region run one shard per task.
 */
private[routing] object KnownNodes {
  private val stateful: Seq[Class[_]] = Seq(
    classOf[StateStoreRestoreExec],
    classOf[StateStoreSaveExec],
    classOf[SessionWindowStateStoreRestoreExec],
    classOf[SessionWindowStateStoreSaveExec],
    classOf[StreamingDeduplicateExec],
    classOf[StreamingDeduplicateWithinWatermarkExec],
    classOf[StreamingGlobalLimitExec],
    classOf[StreamingLocalLimitExec],
    classOf[StreamingSymmetricHashJoinExec],
    classOf[FlatMapGroupsWithStateExec],
    classOf[FlatMapGroupsInPandasWithStateExec],
    classOf[TransformWithStateExec],
    classOf[TransformWithStateInPySparkExec],
    classOf[EventTimeWatermarkExec],
    classOf[UpdateEventTimeColumnExec]
  )

  private val rowByRow: Seq[Class[_]] = Seq(
    classOf[ProjectExec],
    classOf[FilterExec],
    classOf[ExpandExec],
    classOf[GenerateExec],
    classOf[SortExec],
    classOf[LocalLimitExec],
    classOf[GlobalLimitExec],
    classOf[CollectMetricsExec],
    classOf[HashAggregateExec],
    classOf[ObjectHashAggregateExec],
    classOf[SortAggregateExec],
    classOf[MergingSessionsExec],
    classOf[UpdatingSessionsExec],
    classOf[WriteToDataSourceV2Exec]
  )

  private val objects: Seq[Class[_]] = Seq(
    classOf[DeserializeToObjectExec],
    classOf[SerializeFromObjectExec],
    classOf[MapPartitionsExec],
    classOf[MapElementsExec],
    classOf[AppendColumnsExec],
    classOf[AppendColumnsWithObjectExec],
    classOf[MapGroupsExec],
    classOf[CoGroupExec]
  )

  private val python: Seq[Class[_]] = Seq(
    classOf[BatchEvalPythonExec],
    classOf[ArrowEvalPythonExec],
    classOf[BatchEvalPythonUDTFExec],
    classOf[ArrowEvalPythonUDTFExec],
    classOf[MapInPandasExec],
    classOf[MapInArrowExec],
    classOf[FlatMapGroupsInPandasExec],
    classOf[FlatMapGroupsInArrowExec],
    classOf[FlatMapCoGroupsInPandasExec],
    classOf[FlatMapCoGroupsInArrowExec]
  )

  /** Those with two inputs zip them, or take the second one whole, by broadcast. A union is listed apart: see Regions. */
  private val joins: Seq[Class[_]] = Seq(
    classOf[SortMergeJoinExec],
    classOf[ShuffledHashJoinExec],
    classOf[BroadcastHashJoinExec],
    classOf[BroadcastNestedLoopJoinExec]
  )

  private val all: Set[Class[_]] = (stateful ++ rowByRow ++ objects ++ python ++ joins).toSet + classOf[UnionExec]

  def contains(node: SparkPlan): Boolean = all.contains(node.getClass)
}
