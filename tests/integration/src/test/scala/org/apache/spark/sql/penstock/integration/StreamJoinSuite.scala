package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases.StreamJoinCases
import org.apache.spark.sql.penstock.integration.harness.{Brief, OperatorMatrixSuite}

class StreamJoinSuite extends OperatorMatrixSuite {
  compareWithSpark(Brief.orElse(StreamJoinCases.inDefaultAndNewestFormat, StreamJoinCases.all))
}
