package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.ExchangeCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class ExchangeSuite extends OperatorMatrixSuite {
  compareWithSpark(ExchangeCases.all)
}
