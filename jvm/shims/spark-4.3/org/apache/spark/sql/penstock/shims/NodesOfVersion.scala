package org.apache.spark.sql.penstock.shims

import org.apache.spark.sql.execution.BinByExec
import org.apache.spark.sql.execution.externalUDF.MapPartitionsExternalUDFExec
import org.apache.spark.sql.execution.joins.SortMergeAsOfJoinExec
import org.apache.spark.sql.execution.streaming.{ProjectAggregationBufferExec, StatefulStreamlineAggregateExec}

/** Physical operators that not every Spark version has, by how they treat partitions. */
object NodesOfVersion {
  val keepPartitions: Seq[Class[_]] = Seq(
    classOf[BinByExec],
    classOf[SortMergeAsOfJoinExec],
    classOf[ProjectAggregationBufferExec],
    classOf[StatefulStreamlineAggregateExec]
  )

  /** Refused operators, each with the reason. */
  val refused: Seq[(Class[_], String)] = Seq(classOf[MapPartitionsExternalUDFExec] -> "cannot be executed by Spark yet")
}
