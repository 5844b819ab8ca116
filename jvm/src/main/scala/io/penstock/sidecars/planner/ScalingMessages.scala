package io.penstock.sidecars.planner

import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.control.{Demand, Scaled}

/** Converts demands to frames and frames to numbers of executors: docs/PROTOCOL.md, section 9. */
object ScalingMessages {
  private val MaxReasonChars = 1000

  def head(demand: Demand): ObjectNode =
    PlannerFrame.newHead()
      .put("run", demand.run.toString).put("batch", demand.batch).put("executors", demand.executors)
      .put("rows", demand.rows).put("batch_ms", demand.batchMs).put("interval_ms", demand.intervalMs)
      .put("work_ms", demand.workMs).put("tasks", demand.tasks).put("target_ms", demand.targetMs)
      .put("cores", demand.cores).put("least", demand.least).put("most", demand.most)

  /**
   * The number of executors in an answer to a demand.
   *
   * @return
   *   the number of executors, or the reason why the answer does not contain a valid one
   */
  def scaled(answer: PlannerFrame, asked: Demand): Either[String, Scaled] = {
    val head = answer.head
    val executors = head.path("executors").asInt(0)
    answer.kind match {
      case FrameKind.Refused => Left(s"the planner refused: ${head.path("reason").asText("no reason")}")
      case FrameKind.Scaled
          if head.path("run").asText == asked.run.toString && head.path("batch").asLong(-1L) == asked.batch &&
            executors >= asked.least && executors <= asked.most && head.path("reason").isTextual =>
        Right(Scaled(executors, head.path("reason").asText.take(MaxReasonChars)))
      case _ => Left(s"impossible answer: ${head.toString.take(MaxReasonChars)}")
    }
  }
}
