package io.penstock.sidecars.planner

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.control.{Homing, Measured, Pinning, Plan, RowTimes}
import io.penstock.routing.{ExecutorSet, Homes}

/** Converts measurements to frames and frames to plans: docs/PROTOCOL.md, section 9. */
object PlanMessages {
  private val MaxReasonChars = 1000
  private val MaxKeys = 1024

  def head(measured: Measured): ObjectNode = {
    val head = PlannerFrame.newHead()
    head.put("run", measured.run.toString).put("region", measured.region).put("batch", measured.batch)
    head.put("shards", measured.rows.length).put("tasks", measured.tasks).put("most", measured.maxTasks)
    head.put("stage_ms", measured.stageMs)
    val tasks = head.putArray("tasks_ms")
    measured.tasksMs.foreach(tasks.add(_))
    head.put("plans_tasks", measured.plansTasks).put("attributes", measured.attributing.nonEmpty)
    measured.placing.foreach { p =>
      head.putObject("placing").put("policy", p.policy).put("theta", p.theta).put("tasks", p.tasks)
    }
    measured.pinning.foreach(putPinning(head, _))
    measured.homing.foreach(putHoming(head, _))
    head
  }

  private def putHoming(head: ObjectNode, homing: Homing): Unit = {
    val node = head.putObject("homing").put("theta", homing.theta).put("changed", homing.changed)
    node.put("bytes_per_ms", homing.moveCost.bytesPerMs).put("move_ms", homing.moveCost.moveMs)
    val (executors, cores, tasks) = (node.putArray("executors"), node.putArray("cores"), node.putArray("tasks"))
    homing.executors.locations.foreach(executors.add(_))
    homing.executors.cores.foreach(cores.add(_))
    homing.tasks.foreach(tasks.add(_))
  }

  private def putPinning(head: ObjectNode, pinning: Pinning): Unit = {
    val node = head.putObject("pinning")
    node.put("theta", pinning.theta).put("most", pinning.most).put("tasks", pinning.tasks)
    node.put("base_shards", pinning.layout.baseShards)
    val slots = node.putArray("pin_slots")
    pinning.layout.pinSlots.foreach(_.fold(slots.addNull())(slots.add(_)))
    val (hashes, rows, busyNs) = (node.putArray("hashes"), node.putArray("rows"), node.putArray("busy_ns"))
    pinning.heavy.sortBy(k => (-k.busyNs, -k.rows, k.hash)).take(MaxKeys).foreach { key =>
      hashes.add(key.hash)
      rows.add(key.rows)
      busyNs.add(key.busyNs)
    }
  }

  def body(measured: Measured): Array[Byte] = {
    val loads = Seq("rows" -> measured.rows, "busy_ns" -> measured.busyNs)
    val placed = measured.placing.map(p => "task" -> p.taskOf.map(_.toLong))
    val stateBytes = measured.placing.map(_.stateBytes).orElse(measured.pinning.map(_.stateBytes))
      .orElse(measured.homing.map(_.stateBytes))
    val ranOn = measured.attributing.map(a => "ran_on" -> a.ranOn.map(_.toLong))
    // The protocol has no negative numbers: the number of executors stands for "no home".
    val homes = measured.homing.map(h =>
      "home" -> h.home.map(w => (if (w == ExecutorSet.Unknown) h.executors.size else w).toLong)
    )
    ShardColumns.encode(loads ++ placed ++ ranOn ++ homes ++ stateBytes.map("state_bytes" -> _): _*)
  }

  /**
   * The plan in an answer to measurements.
   *
   * @return
   *   the plan, or the reason why the answer does not contain a valid one
   */
  def plan(answer: PlannerFrame, asked: Measured): Either[String, Plan] = answer.kind match {
    case FrameKind.Refused => Left(s"the planner refused: ${text(answer.head, "reason").getOrElse("no reason")}")
    case FrameKind.Planned => checked(answer, asked).left.map(why => s"impossible plan: $why")
    case other => Left(s"impossible plan: a frame of kind ${other.name}")
  }

  private def checked(answer: PlannerFrame, asked: Measured): Either[String, Plan] = {
    val head = answer.head
    val most =
      if (asked.plansTasks) math.min(asked.maxTasks, asked.rows.length)
      else asked.placing.fold(asked.tasks)(_.tasks)
    for {
      _ <- same("run", text(head, "run"), asked.run.toString)
      _ <- same("region", number(head, "region"), asked.region)
      _ <- same("batch", number(head, "batch"), asked.batch)
      tasks <- number(head, "tasks").filter(n => n >= 1 && n <= most)
        .toRight(s"tasks must be a number from 1 to $most, found ${head.get("tasks")}")
      reason <- text(head, "reason").toRight(s"reason must be a string, found ${head.get("reason")}")
      taskOf <- asked.placing match {
        case Some(placing) => placed(answer.body, placing.taskOf.length, tasks.toInt).map(Some(_))
        case None => Right(None)
      }
      pinned <- asked.pinning match {
        case Some(pinning) => hashes(head.get("pinned"), pinning.most).map(Some(_))
        case None => Right(None)
      }
      rowTimes <- asked.attributing match {
        case Some(a) if head.path("attributed").asBoolean(false) =>
          ShardColumns.decode(answer.body, "row_ns", a.ranOn.length).flatMap { ns =>
            Either.cond(ns.forall(_ >= 0L), Some(RowTimes(a.layout, ns)), "the time of a row is negative")
          }
        case _ => Right(None)
      }
      homes <- asked.homing match {
        case Some(homing) => homed(answer, homing, tasks.toInt).map(Some(_))
        case None => Right(None)
      }
      pinsReason = pinned.flatMap(_ => text(head, "pins_reason")).map(_.take(MaxReasonChars)).filter(_.nonEmpty)
    } yield Plan(asked.batch, tasks.toInt, reason.take(MaxReasonChars), taskOf, pinned, pinsReason, rowTimes, homes)
  }

  private def homed(answer: PlannerFrame, asked: Homing, tasks: Int): Either[String, Homes] = {
    val executors = asked.executors
    for {
      reason <- text(answer.head, "homes_reason").toRight("homes_reason must be a string")
      home <- ShardColumns.decode(answer.body, "home", asked.home.length)
      _ <- home.find(w => w < 0L || w >= executors.size)
        .toLeft(()).left.map(w => s"a shard is placed on executor $w, but there are ${executors.size} executors")
      divided <-
        Option[JsonNode](answer.head.get("executor_tasks")).fold[Either[String, Map[String, Int]]](Right(Map.empty))(
          tasksOf(_, executors, tasks)
        )
      _ <- home.find(w => divided.nonEmpty && !divided.contains(executors.locations(w.toInt)))
        .toLeft(()).left.map(w => s"a shard is placed on executor $w, which has no task")
    } yield Homes(
      home.zip(asked.home).map { case (w, before) => if (w == before) null else executors.locations(w.toInt) },
      asked.home.map(w => executors.locations.lift(w).orNull),
      reason.take(MaxReasonChars),
      divided
    )
  }

  /** Number of tasks on each executor that has at least one. */
  private def tasksOf(found: JsonNode, executors: ExecutorSet, tasks: Int): Either[String, Map[String, Int]] = {
    val counts = Option(found).filter(_.isArray).toSeq.flatMap(_.elements().asScala)
      .map(n => if (n.isIntegralNumber && n.canConvertToInt) n.intValue else -1)
    Either.cond(
      counts.size == executors.size && counts.forall(_ >= 0) && counts.map(_.toLong).sum == tasks,
      executors.locations.zip(counts).filter(_._2 > 0).toMap,
      s"executor_tasks must divide $tasks tasks among ${executors.size} executors, found $found"
    )
  }

  private def placed(body: Array[Byte], shards: Int, tasks: Int): Either[String, Array[Int]] =
    ShardColumns.decode(body, "task", shards).flatMap { column =>
      column.find(t => t < 0L || t >= tasks)
        .toLeft(column.map(_.toInt))
        .left.map(t => s"a shard is placed on task $t, but there are $tasks tasks")
    }

  private def hashes(found: JsonNode, most: Int): Either[String, Set[Int]] = {
    val elements = Option(found).filter(_.isArray).toSeq.flatMap(_.elements().asScala)
    val hashes = elements.filter(n => n.isIntegralNumber && n.canConvertToInt).map(_.intValue)
    if (found == null || !found.isArray || hashes.size < elements.size) {
      Left(s"pinned must be a list of 32-bit integers, found $found")
    } else if (hashes.distinct.size < hashes.size) Left(s"a hash is pinned twice: $found")
    else Either.cond(hashes.size <= most, hashes.toSet, s"${hashes.size} hashes are pinned, at most $most are allowed")
  }

  private def same[T](name: String, found: Option[T], asked: T): Either[String, Unit] =
    Either.cond(found.contains(asked), (), s"$name must be $asked, found ${found.getOrElse("none")}")

  private def text(head: ObjectNode, name: String): Option[String] =
    Option[JsonNode](head.get(name)).filter(_.isTextual).map(_.textValue)

  private def number(head: ObjectNode, name: String): Option[Long] =
    Option[JsonNode](head.get(name)).filter(n => n.isIntegralNumber && n.canConvertToLong).map(_.longValue)
}
