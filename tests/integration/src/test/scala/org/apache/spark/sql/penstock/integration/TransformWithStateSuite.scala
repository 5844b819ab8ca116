package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.TransformWithStateCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class TransformWithStateSuite extends OperatorMatrixSuite {
  compareWithSpark(TransformWithStateCases.all)
}
