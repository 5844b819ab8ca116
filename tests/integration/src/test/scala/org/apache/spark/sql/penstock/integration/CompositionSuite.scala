package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.CompositionCases
import org.apache.spark.sql.penstock.integration.harness.{Brief, OperatorMatrixSuite}

class CompositionSuite extends OperatorMatrixSuite {
  compareWithSpark(Brief.someOf(CompositionCases.all, every = 3))
}
