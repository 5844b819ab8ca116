package io.penstock.sidecar

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.control.{Measured, Plan}

/** What is measured to a frame, and a frame to a plan: docs/PROTOCOL.md, section 9. */
object PlanMessages {
  private val MostReasonChars = 1000

  def head(measured: Measured): ObjectNode = {
    val head = SidecarFrame.newHead()
    head.put("run", measured.run.toString).put("region", measured.region).put("batch", measured.batch)
    head.put("shards", measured.rows.length).put("tasks", measured.tasks).put("most", measured.mostTasks)
    head.put("stage_ms", measured.stageMs)
    val tasks = head.putArray("tasks_ms")
    measured.tasksMs.foreach(tasks.add(_))
    head
  }

  def body(measured: Measured): Array[Byte] =
    ShardColumns.encode("rows" -> measured.rows, "busy_ns" -> measured.busyNs)

  /**
   * The plan that answers what was measured.
   *
   * @return
   *   why the answer is none, where it is not
   */
  def plan(answer: SidecarFrame, asked: Measured): Either[String, Plan] = answer.kind match {
    case FrameKind.Refused => Left(s"the planner refused: ${text(answer.head, "reason").getOrElse("no reason")}")
    case FrameKind.Planned => checked(answer.head, asked).left.map(why => s"impossible plan: $why")
    case other => Left(s"impossible plan: a frame of kind ${other.name}")
  }

  private def checked(head: ObjectNode, asked: Measured): Either[String, Plan] = {
    val most = math.min(asked.mostTasks, asked.rows.length)
    for {
      _ <- same("run", text(head, "run"), asked.run.toString)
      _ <- same("region", number(head, "region"), asked.region)
      _ <- same("batch", number(head, "batch"), asked.batch)
      tasks <- number(head, "tasks").filter(n => n >= 1 && n <= most)
        .toRight(s"tasks must be a number from 1 to $most, found ${head.get("tasks")}")
      reason <- text(head, "reason").toRight(s"reason must be a text, found ${head.get("reason")}")
    } yield Plan(asked.batch, tasks.toInt, reason.take(MostReasonChars))
  }

  private def same[T](name: String, found: Option[T], asked: T): Either[String, Unit] =
    Either.cond(found.contains(asked), (), s"$name must be $asked, found ${found.getOrElse("none")}")

  private def text(head: ObjectNode, name: String): Option[String] =
    Option[JsonNode](head.get(name)).filter(_.isTextual).map(_.textValue)

  private def number(head: ObjectNode, name: String): Option[Long] =
    Option[JsonNode](head.get(name)).filter(n => n.isIntegralNumber && n.canConvertToLong).map(_.longValue)
}
