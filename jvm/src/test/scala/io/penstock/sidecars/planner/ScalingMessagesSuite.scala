package io.penstock.sidecars.planner

import java.util.UUID

import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.control.{Demand, Scaled}
import org.scalatest.funsuite.AnyFunSuite

class ScalingMessagesSuite extends AnyFunSuite {
  private val run = new UUID(3, 4)
  private val asked = Demand(run, 9, 2, 1000, 400, 500, 700, 4, 1000, 2, 1, 8)

  private def scaled(change: ObjectNode => Unit, kind: FrameKind = FrameKind.Scaled): Either[String, Scaled] = {
    val head =
      PlannerFrame.newHead().put("run", run.toString).put("batch", 9L).put("executors", 3).put("reason", "more")
    change(head)
    ScalingMessages.scaled(PlannerFrame(kind, 1, head, Array.emptyByteArray), asked)
  }

  test("a demand is encoded as numbers in the head") {
    assert(ScalingMessages.head(asked).toString == s"""{"run":"$run","batch":9,"executors":2,"rows":1000,""" +
      """"batch_ms":400,"interval_ms":500,"work_ms":700,"tasks":4,"target_ms":1000,"cores":2,"least":1,"most":8}""")
  }

  test("an answer has an allowed number of executors and a reason") {
    assert(scaled(_ => ()) == Right(Scaled(3, "more")))
    assert(scaled(_.put("reason", "x" * 5000): Unit).exists(_.reason.length == 1000))
  }

  Seq[(String, Either[String, Scaled])](
    "of another run" -> scaled(_.put("run", new UUID(1, 1).toString): Unit),
    "of another batch" -> scaled(_.put("batch", 8): Unit),
    "of too many" -> scaled(_.put("executors", 9): Unit),
    "of none" -> scaled(_.remove("executors"): Unit),
    "without a reason" -> scaled(_.remove("reason"): Unit),
    "of another kind" -> scaled(_ => (), FrameKind.Planned)
  ).foreach { case (problem, found) =>
    test(s"an answer $problem is rejected") {
      assert(found.left.exists(_.startsWith("impossible answer: ")), found)
    }
  }

  test("a refusal contains the planner's reason") {
    assert(scaled(_ => (), FrameKind.Refused) == Left("the planner refused: more"))
  }
}
