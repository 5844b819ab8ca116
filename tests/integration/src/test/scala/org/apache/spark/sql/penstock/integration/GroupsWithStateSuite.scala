package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.GroupsWithStateCases
import org.apache.spark.sql.penstock.integration.harness.OperatorMatrixSuite

class GroupsWithStateSuite extends OperatorMatrixSuite {
  compareWithSpark(GroupsWithStateCases.all)
}
