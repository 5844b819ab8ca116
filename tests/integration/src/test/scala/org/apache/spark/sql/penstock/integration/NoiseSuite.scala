package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.harness.PenstockApplication
import org.apache.spark.sql.penstock.integration.noise.{Disturbance, NoisyRun}

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/** Noise is not taken for load. `make noise` runs more of it. */
@SameOnEverySpark
class NoiseSuite extends AnyFunSuite with PenstockApplication {

  for (disturbance <- Seq(Disturbance.Burners, Disturbance.Stops))
    test(s"even keys stay evenly bound in spite of other load: $disturbance") {
      val run = NoisyRun(seed = 1L, tasks = 2, rowsOfShard = 5, hasExpensiveKey = false, disturbance, batches = 15)
      val reports = run.play(application, newDirectory("noise").resolve("checkpoint"))
      assert(reports.size == 15)
      assert(run.contradictions(reports).isEmpty)
      assert(reports.drop(5).map(_.moved).sum == 0, reports)
    }
}
