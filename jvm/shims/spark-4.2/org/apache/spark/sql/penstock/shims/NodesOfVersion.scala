package org.apache.spark.sql.penstock.shims

/** Physical operators that not every Spark has, by what they do with partitions. */
object NodesOfVersion {
  val keepPartitions: Seq[Class[_]] = Nil

  /** Each with the reason. */
  val refused: Seq[(Class[_], String)] = Nil
}
