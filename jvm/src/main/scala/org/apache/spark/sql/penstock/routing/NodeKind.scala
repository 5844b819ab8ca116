package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.execution.aggregate._
import org.apache.spark.sql.execution.command.DataWritingCommandExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.debug.DebugExec
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python._
import org.apache.spark.sql.execution.python.streaming.{
  FlatMapGroupsInPandasWithStateExec,
  TransformWithStateInPySparkExec
}
import org.apache.spark.sql.execution.streaming.continuous.WriteToContinuousDataSourceExec
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.penstock.shims.NodesOfVersion

/** How a node of a plan treats the partitions of its inputs. */
sealed private[routing] trait NodeKind

/** Registers every physical operator of Spark once. A test fails if one is missing. */
private[routing] object NodeKind {

  /**
   * Partition p of the output is computed from partition p of every input that is not broadcast, for any number of
   * partitions.
   */
  case object KeepsPartitions extends NodeKind

  /** Accepts any number of input partitions, and its output has other partitions. */
  case object GathersPartitions extends NodeKind

  /**
   * The node is neither known to keep partitions nor to accept any number of them.
   *
   * @param why
   *   The reason, as the rest of a sentence that begins with the node's name
   */
  final case class Refused(why: String) extends NodeKind

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
    classOf[WindowExec],
    classOf[WindowGroupLimitExec],
    classOf[MergeRowsExec],
    classOf[WriteToDataSourceV2Exec],
    classOf[ColumnarToRowExec],
    classOf[RowToColumnarExec],
    classOf[WholeStageCodegenExec],
    classOf[InputAdapter],
    classOf[DebugExec]
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

  private val otherLanguages: Seq[Class[_]] = Seq(
    classOf[BatchEvalPythonExec],
    classOf[ArrowEvalPythonExec],
    classOf[BatchEvalPythonUDTFExec],
    classOf[ArrowEvalPythonUDTFExec],
    classOf[ArrowAggregatePythonExec],
    classOf[ArrowWindowPythonExec],
    classOf[MapInPandasExec],
    classOf[MapInArrowExec],
    classOf[FlatMapGroupsInPandasExec],
    classOf[FlatMapGroupsInArrowExec],
    classOf[FlatMapCoGroupsInPandasExec],
    classOf[FlatMapCoGroupsInArrowExec],
    classOf[MapPartitionsInRWithArrowExec],
    classOf[FlatMapGroupsInRExec],
    classOf[FlatMapGroupsInRWithArrowExec],
    classOf[SparkScriptTransformationExec]
  )

  /**
   * Nodes that zip their inputs by partition, or get one input by broadcast. A union does so only in some cases: see
   * [[of]].
   */
  private val joins: Seq[Class[_]] = Seq(
    classOf[SortMergeJoinExec],
    classOf[ShuffledHashJoinExec],
    classOf[BroadcastHashJoinExec],
    classOf[BroadcastNestedLoopJoinExec],
    classOf[UnionExec]
  )

  private val gathering: Seq[Class[_]] = Seq(
    classOf[ShuffleExchangeExec],
    classOf[BroadcastExchangeExec],
    classOf[CoalesceExec],
    classOf[CartesianProductExec],
    classOf[TakeOrderedAndProjectExec],
    classOf[CollectLimitExec],
    classOf[CollectTailExec],
    classOf[GroupPartitionsExec]
  )

  private val refused: Seq[(Class[_], String)] = Seq(
    classOf[SampleExec] -> "chooses other rows if the partitions change",
    classOf[AttachDistributedSequenceExec] -> "runs its input twice",
    classOf[AQEShuffleReadExec] -> "reads an exchange adaptively, as only batch queries do",
    classOf[WriteToContinuousDataSourceExec] -> "belongs to continuous processing",
    classOf[DataWritingCommandExec] -> "is a command",
    classOf[WriteFilesExec] -> "writes files",
    classOf[MultiResultExec] -> "returns the results of several commands",
    classOf[ExplainOnlySparkPlan] -> "is never executed"
  )

  /** Types whose subclasses are all refused. The first matching type determines the reason. */
  private val byType: Seq[(Class[_], String)] = Seq(
    classOf[V2CommandExec] -> "is a command",
    classOf[BaseSubqueryExec] -> "is a subquery",
    classOf[LeafExecNode] -> "feeds it without an exchange"
  )

  /** Nodes of optional Spark modules, by class name because the class may be missing. */
  private val byName: Map[String, NodeKind] =
    Map("org.apache.spark.sql.hive.execution.HiveScriptTransformationExec" -> KeepsPartitions)

  private val byClass: Map[Class[_], NodeKind] = {
    val keeping = stateful ++ rowByRow ++ objects ++ otherLanguages ++ joins ++ NodesOfVersion.keepPartitions
    val all = keeping.map(_ -> KeepsPartitions) ++ gathering.map(_ -> GathersPartitions) ++
      (refused ++ NodesOfVersion.refused).map { case (c, why) => c -> Refused(why) }
    require(all.map(_._1).distinct.size == all.size, "a node is registered twice")
    all.toMap
  }

  /** Kind of a node class; None if the class is not part of Spark. */
  def of(nodes: Class[_]): Option[NodeKind] =
    byClass.get(nodes)
      .orElse(byName.get(nodes.getName))
      .orElse(byType.collectFirst { case (t, why) if t.isAssignableFrom(nodes) => Refused(why) })

  /** Kind of a node; None if its class is not part of Spark. */
  def of(node: SparkPlan): Option[NodeKind] = node match {
    case u: UnionExec if u.outputPartitioning.isInstanceOf[UnknownPartitioning] => Some(GathersPartitions)
    case n => of(n.getClass)
  }
}
