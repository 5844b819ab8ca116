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

/** What a node of a plan does with the partitions of its inputs. */
sealed private[routing] trait NodeKind

/** Every physical operator of Spark, each registered once; a test fails for one that is not. */
private[routing] object NodeKind {

  /** Partition p of the output is made of partition p of every input that is not broadcast, however many there are. */
  case object KeepsPartitions extends NodeKind

  /** Takes the partitions of its inputs, however many there are, and makes others of them. */
  case object GathersPartitions extends NodeKind

  /**
   * Neither can be said of it.
   *
   * @param why
   *   goes on a sentence that begins with its name
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

  /** Those with two inputs zip them, or take the second one whole, by broadcast; a union may: see [[of]]. */
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
    classOf[SampleExec] -> "chooses other rows where there are other partitions",
    classOf[AttachDistributedSequenceExec] -> "runs its input twice",
    classOf[AQEShuffleReadExec] -> "reads an exchange as batch queries do",
    classOf[WriteToContinuousDataSourceExec] -> "is of continuous processing",
    classOf[DataWritingCommandExec] -> "is a command",
    classOf[WriteFilesExec] -> "writes files",
    classOf[MultiResultExec] -> "has the results of several commands",
    classOf[ExplainOnlySparkPlan] -> "is only shown"
  )

  /** What follows for all nodes of a type. Which comes first counts. */
  private val byType: Seq[(Class[_], String)] = Seq(
    classOf[V2CommandExec] -> "is a command",
    classOf[BaseSubqueryExec] -> "is a subquery",
    classOf[LeafExecNode] -> "feeds it without an exchange"
  )

  /** What is in modules of Spark that need not be there. */
  private val byName: Map[String, NodeKind] =
    Map("org.apache.spark.sql.hive.execution.HiveScriptTransformationExec" -> KeepsPartitions)

  private val byClass: Map[Class[_], NodeKind] = {
    val keeping = stateful ++ rowByRow ++ objects ++ otherLanguages ++ joins ++ NodesOfVersion.keepPartitions
    val all = keeping.map(_ -> KeepsPartitions) ++ gathering.map(_ -> GathersPartitions) ++
      (refused ++ NodesOfVersion.refused).map { case (c, why) => c -> Refused(why) }
    require(all.map(_._1).distinct.size == all.size, "a node is registered twice")
    all.toMap
  }

  /** What is known of a class of nodes; None of one that is not Spark's. */
  def of(nodes: Class[_]): Option[NodeKind] =
    byClass.get(nodes)
      .orElse(byName.get(nodes.getName))
      .orElse(byType.collectFirst { case (t, why) if t.isAssignableFrom(nodes) => Refused(why) })

  /** What is known of a node. */
  def of(node: SparkPlan): Option[NodeKind] = node match {
    case u: UnionExec if u.outputPartitioning.isInstanceOf[UnknownPartitioning] => Some(GathersPartitions)
    case n => of(n.getClass)
  }
}
