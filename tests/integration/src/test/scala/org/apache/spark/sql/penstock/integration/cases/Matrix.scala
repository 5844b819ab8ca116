package org.apache.spark.sql.penstock.integration.cases

import org.apache.spark.sql.penstock.integration.harness.OperatorCase

/** Every query of the operator matrix. */
object Matrix {
  val all: Seq[OperatorCase] = AggregationCases.all ++ DeduplicationCases.all ++ SessionWindowCases.all ++
    StreamJoinCases.all ++ GroupsWithStateCases.all ++ TransformWithStateCases.all ++ CompositionCases.all ++
    ExchangeCases.all
}
