package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.SessionWindowCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class SessionWindowSuite extends OperatorMatrixSuite {
  compareWithSpark(SessionWindowCases.all)
}
