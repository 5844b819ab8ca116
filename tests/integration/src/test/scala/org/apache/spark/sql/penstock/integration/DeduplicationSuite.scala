package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.DeduplicationCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class DeduplicationSuite extends OperatorMatrixSuite {
  compareWithSpark(DeduplicationCases.all)
}
