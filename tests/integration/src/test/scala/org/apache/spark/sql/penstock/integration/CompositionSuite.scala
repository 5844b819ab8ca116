package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.CompositionCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class CompositionSuite extends OperatorMatrixSuite {
  compareWithSpark(CompositionCases.all)
}
