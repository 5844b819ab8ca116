package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.execution.SparkPlan

/**
 * A node that extends one of Spark's nodes, and whose constructor has one parameter: a node of Spark's class, whose
 * fields it takes. So it does not depend on the number of these fields, which differs between Spark versions.
 *
 * Spark copies a node by passing all fields to the constructor of its class, so the fields go to a plain node first.
 */
private[routing] trait MadeFromPlain extends SparkPlan {

  /** A node of Spark's class with the fields of this one. */
  protected def plain: SparkPlan

  override def makeCopy(newArgs: Array[AnyRef]): SparkPlan = super.makeCopy(Array(plain.makeCopy(newArgs)))

  override def clone(): SparkPlan = super.makeCopy(Array(plain.clone()))
}
