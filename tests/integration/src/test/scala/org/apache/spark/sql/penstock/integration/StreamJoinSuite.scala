package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.StreamJoinCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class StreamJoinSuite extends OperatorMatrixSuite {
  compareWithSpark(StreamJoinCases.all)
}
