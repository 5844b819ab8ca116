package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.ExchangeCases
import org.apache.spark.sql.penstock.integration.harness.{Brief, OperatorMatrixSuite}

class ExchangeSuite extends OperatorMatrixSuite {
  compareWithSpark(Brief.someOf(ExchangeCases.all, every = 3))
}
