package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.cases._
import org.apache.spark.sql.penstock.integration.harness._

/** A few queries under random scripts. Another seed makes other scripts. */
class RandomScriptSuite extends OperatorMatrixSuite {
  private val scriptsPerCase = Brief.orElse(1, 2)

  for {
    operatorCase <- Seq(
      AggregationCases.appendMode,
      SessionWindowCases.appendMode,
      StreamJoinCases.fullOuterNewestFormat,
      TransformWithStateCases.timeToLive
    ).map(c => c.copy(evidence = Nil)(c.query))
    number <- 1 to scriptsPerCase
  } test(s"${operatorCase.name}: random script $number") {
    assertSameAnswers(operatorCase, (seed, twoInputs) => RandomScripts.of(seed + number, twoInputs))
  }
}
