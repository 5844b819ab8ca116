package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleOrigin}

/** A routed exchange, with the constructor of the exchange of this Spark version. */
final class RoutedExchange(
    outputPartitioning: Partitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long],
    pipelined: Boolean = false
) extends ShuffleExchangeExec(outputPartitioning, child, shuffleOrigin, advisoryPartitionSize, pipelined)
    with RoutedExchangeLike {

  override protected def withNewChildInternal(newChild: SparkPlan): ShuffleExchangeExec =
    new RoutedExchange(outputPartitioning, newChild, shuffleOrigin, advisoryPartitionSize, pipelined)

  override def canEqual(other: Any): Boolean = other.isInstanceOf[RoutedExchange]
  override def equals(other: Any): Boolean = other.isInstanceOf[RoutedExchange] && super.equals(other)
  override def hashCode(): Int = super.hashCode()
}

object RoutedExchange {

  /** Makes a routed exchange from `exchange`. */
  def apply(exchange: ShuffleExchangeExec, partitioning: ShardPartitioning): RoutedExchange =
    new RoutedExchange(partitioning, exchange.child, exchange.shuffleOrigin, exchange.advisoryPartitionSize)
}
