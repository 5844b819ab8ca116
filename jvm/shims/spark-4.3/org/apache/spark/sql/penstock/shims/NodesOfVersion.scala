package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.execution.BinByExec
import org.apache.spark.sql.execution.externalUDF.MapPartitionsExternalUDFExec
import org.apache.spark.sql.execution.joins.SortMergeAsOfJoinExec
import org.apache.spark.sql.execution.streaming.{ProjectAggregationBufferExec, StatefulStreamlineAggregateExec}

/** Physical operators that not every Spark has, by what they do with partitions. */
object NodesOfVersion {
  val keepPartitions: Seq[Class[_]] = Seq(
    classOf[BinByExec],
    classOf[SortMergeAsOfJoinExec],
    classOf[ProjectAggregationBufferExec],
    classOf[StatefulStreamlineAggregateExec]
  )

  /** Each with the reason. */
  val refused: Seq[(Class[_], String)] = Seq(classOf[MapPartitionsExternalUDFExec] -> "is not run by Spark yet")
}
