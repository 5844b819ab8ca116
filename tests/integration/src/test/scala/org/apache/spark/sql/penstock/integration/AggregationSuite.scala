package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.AggregationCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class AggregationSuite extends OperatorMatrixSuite {
  compareWithSpark(AggregationCases.all)
}
