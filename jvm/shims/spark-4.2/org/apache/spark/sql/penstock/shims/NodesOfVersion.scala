package org.apache.spark.sql.penstock.shims

/** Physical operators that not every Spark version has, by how they treat partitions. */
object NodesOfVersion {
  val keepPartitions: Seq[Class[_]] = Nil

  /** Refused operators, each with the reason. */
  val refused: Seq[(Class[_], String)] = Nil
}
