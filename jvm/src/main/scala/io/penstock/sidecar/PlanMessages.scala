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
    head.put("plans_tasks", measured.plansTasks)
    measured.placing.foreach { p =>
      head.putObject("placing").put("policy", p.policy).put("theta", p.theta).put("tasks", p.tasks)
    }
    head
  }

  def body(measured: Measured): Array[Byte] = {
    val loads = Seq("rows" -> measured.rows, "busy_ns" -> measured.busyNs)
    val places =
      measured.placing.toSeq.flatMap(p => Seq("task" -> p.taskOf.map(_.toLong), "state_bytes" -> p.stateBytes))
    ShardColumns.encode(loads ++ places: _*)
  }

  /**
   * The plan that answers what was measured.
   *
   * @return
   *   why the answer is none, where it is not
   */
  def plan(answer: SidecarFrame, asked: Measured): Either[String, Plan] = answer.kind match {
    case FrameKind.Refused => Left(s"the planner refused: ${text(answer.head, "reason").getOrElse("no reason")}")
    case FrameKind.Planned => checked(answer, asked).left.map(why => s"impossible plan: $why")
    case other => Left(s"impossible plan: a frame of kind ${other.name}")
  }

  private def checked(answer: SidecarFrame, asked: Measured): Either[String, Plan] = {
    val head = answer.head
    val most =
      if (asked.plansTasks) math.min(asked.mostTasks, asked.rows.length)
      else asked.placing.fold(asked.tasks)(_.tasks)
    for {
      _ <- same("run", text(head, "run"), asked.run.toString)
      _ <- same("region", number(head, "region"), asked.region)
      _ <- same("batch", number(head, "batch"), asked.batch)
      tasks <- number(head, "tasks").filter(n => n >= 1 && n <= most)
        .toRight(s"tasks must be a number from 1 to $most, found ${head.get("tasks")}")
      reason <- text(head, "reason").toRight(s"reason must be a text, found ${head.get("reason")}")
      taskOf <- asked.placing match {
        case Some(placing) => placed(answer.body, placing.taskOf.length, tasks.toInt).map(Some(_))
        case None => Right(None)
      }
    } yield Plan(asked.batch, tasks.toInt, reason.take(MostReasonChars), taskOf)
  }

  private def placed(body: Array[Byte], shards: Int, tasks: Int): Either[String, Array[Int]] =
    ShardColumns.decode(body, "task", shards).flatMap { column =>
      column.find(t => t < 0L || t >= tasks)
        .toLeft(column.map(_.toInt))
        .left.map(t => s"a shard is placed on task $t, and there are $tasks")
    }

  private def same[T](name: String, found: Option[T], asked: T): Either[String, Unit] =
    Either.cond(found.contains(asked), (), s"$name must be $asked, found ${found.getOrElse("none")}")

  private def text(head: ObjectNode, name: String): Option[String] =
    Option[JsonNode](head.get(name)).filter(_.isTextual).map(_.textValue)

  private def number(head: ObjectNode, name: String): Option[Long] =
    Option[JsonNode](head.get(name)).filter(n => n.isIntegralNumber && n.canConvertToLong).map(_.longValue)
}
