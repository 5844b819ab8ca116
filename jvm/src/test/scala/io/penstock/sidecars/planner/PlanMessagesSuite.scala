package io.penstock.sidecars.planner

import java.util.UUID

import com.fasterxml.jackson.databind.node.ObjectNode
import io.penstock.control.{Attributing, HeavyKey, Homing, Measured, Pinning, Placing, Plan, RowTimes}
import io.penstock.routing.{ExecutorSet, MoveCost}
import io.penstock.sharding.Layout
import org.scalatest.funsuite.AnyFunSuite

class PlanMessagesSuite extends AnyFunSuite {
  private val run = new UUID(3, 4)
  private val asked = Measured(run, 1, 9, 2, 4, 10.5, Seq(4.0, 5.0), Array(1L, 2L, 3L), Array(10L, 20L, 30L))

  private val placing = Placing("refine", 1.1, 2, Array(0, 1, 0), Array(7L, 8L, 0L))

  private def answer(change: ObjectNode => Unit, kind: FrameKind = FrameKind.Planned): Either[String, Plan] = {
    val head = PlannerFrame.newHead()
      .put("run", run.toString).put("region", 1L).put("batch", 9L).put("tasks", 3).put("reason", "best")
    change(head)
    PlanMessages.plan(PlannerFrame(kind, 1, head, Array.emptyByteArray), asked)
  }

  test("measurements are encoded as numbers in the head") {
    val head = PlanMessages.head(asked)
    assert(head.toString == s"""{"run":"$run","region":1,"batch":9,"shards":3,"tasks":2,"most":4,"stage_ms":10.5,""" +
      """"tasks_ms":[4.0,5.0],"plans_tasks":true,"attributes":false}""")
    val both = PlanMessages.head(asked.copy(plansTasks = false, placing = Some(placing)))
    assert(both.toString.endsWith(
      """"plans_tasks":false,"attributes":false,"placing":{"policy":"refine","theta":1.1,"tasks":2}}"""
    ))
  }

  private val pinning =
    Pinning(
      1.1,
      2,
      3,
      Layout(1, Vector(None, Some(-7))),
      Seq(HeavyKey(5, 1L, 20L), HeavyKey(6, 4L, 30L)),
      Array(7L, 8L, 0L)
    )

  test("keys that may be pinned are in the head, the heaviest first") {
    assert(
      PlanMessages.head(asked.copy(pinning = Some(pinning))).toString.endsWith(
        """"pinning":{"theta":1.1,"most":2,"tasks":3,"base_shards":1,"pin_slots":[null,-7],"hashes":[6,5],"rows":[4,1],"busy_ns":[30,20]}}"""
      )
    )
    val body = PlanMessages.body(asked.copy(pinning = Some(pinning)))
    assert(ShardColumns.decode(body, "state_bytes", 3).exists(_.sameElements(pinning.stateBytes)))
  }

  private def pinned(change: ObjectNode => Unit): Either[String, Plan] = {
    val head = PlannerFrame.newHead()
      .put("run", run.toString).put("region", 1L).put("batch", 9L).put("tasks", 2).put("reason", "as it was")
    change(head)
    PlanMessages.plan(
      PlannerFrame(FrameKind.Planned, 1, head, Array.emptyByteArray),
      asked.copy(pinning = Some(pinning))
    )
  }

  private def pins(hashes: Any*)(head: ObjectNode): Unit = {
    val array = head.putArray("pinned")
    hashes.foreach {
      case hash: Int => array.add(hash)
      case hash: Long => array.add(hash)
      case other => array.add(other.toString)
    }
  }

  test("hashes are pinned only if the question asked for pins") {
    assert(pinned(pins(-7, 6)).map(_.pinned) == Right(Some(Set(-7, 6))))
    assert(pinned(pins()).map(_.pinned) == Right(Some(Set.empty)))
    assert(answer(pins(-7)).map(_.pinned) == Right(None))
  }

  Seq[(String, Either[String, Plan], String)](
    ("missing pins", pinned(_ => ()), "pinned must be a list of 32-bit integers, found null"),
    ("pins that are not a list", pinned(_.put("pinned", 3): Unit), "pinned must be a list of 32-bit integers, found 3"),
    ("a pin that is not a number", pinned(pins(1, "x")), "pinned must be a list of 32-bit integers"),
    ("a pin with more than 32 bits", pinned(pins(1L << 31)), "pinned must be a list of 32-bit integers"),
    ("a hash that is pinned twice", pinned(pins(4, 4)), "a hash is pinned twice"),
    ("more pins than allowed", pinned(pins(4, 5, 6)), "3 hashes are pinned, at most 2 are allowed")
  ).foreach { case (name, found, error) =>
    test(s"impossible plan: $name") {
      assert(found.left.exists(e => e.startsWith("impossible plan: ") && e.contains(error)), found)
    }
  }

  private val attributing = Attributing(Layout(2, Vector(Some(5))), Array(1, 0, 1))

  private def attributed(body: Array[Byte], isAttributed: Boolean = true): Either[String, Plan] = {
    val head = PlannerFrame.newHead().put("attributed", isAttributed)
      .put("run", run.toString).put("region", 1L).put("batch", 9L).put("tasks", 2).put("reason", "as it was")
    PlanMessages.plan(
      PlannerFrame(FrameKind.Planned, 1, head, body),
      asked.copy(attributing = Some(attributing))
    )
  }

  test("row times are requested with each shard's task, and returned where they are known") {
    val question = asked.copy(attributing = Some(attributing))
    assert(PlanMessages.head(question).get("attributes").asBoolean)
    assert(ShardColumns.decode(PlanMessages.body(question), "ran_on", 3).exists(_.sameElements(Array(1L, 0L, 1L))))
    val found = attributed(ShardColumns.encode("row_ns" -> Array(7L, 8L, 0L)))
    assert(found.exists(_.rowTimes.exists(t => t.ns.sameElements(Array(7L, 8L, 0L)) && t.layout == attributing.layout)))
    assert(attributed(Array.emptyByteArray, isAttributed = false).map(_.rowTimes) == Right(None))
    assert(answer(_.put("attributed", true): Unit).map(_.rowTimes) == Right(None))
  }

  test("row costs follow their keys to another layout") {
    val times = RowTimes(Layout(2, Vector(Some(5))), Array(40L, 20L, 100L))
    assert(times.relative(times.layout).sameElements(Array(1.0, 0.5, 2.5)))
    assert(times.relative(Layout(2)).sameElements(Array(1.0, 0.5)))
    // Hash 7 leaves shard 1 and takes the pin slot of hash 5.
    assert(times.relative(Layout(2, Vector(Some(7)))).sameElements(Array(1.0, 0.5, 0.5)))
    assert(RowTimes(Layout(2), Array(0L, 0L)).relative(Layout(2)).sameElements(Array(0.01, 0.01)))
  }

  private def placedOn(tasks: Long*): Array[Byte] = ShardColumns.encode("task" -> tasks.toArray)

  private def planned(body: Array[Byte], tasks: Int = 2): Either[String, Plan] = {
    val head = PlannerFrame.newHead()
      .put("run", run.toString).put("region", 1L).put("batch", 9L).put("tasks", tasks).put("reason", "as it was")
    PlanMessages.plan(
      PlannerFrame(FrameKind.Planned, 1, head, body),
      asked.copy(plansTasks = false, placing = Some(placing))
    )
  }

  test("shards are placed if the question asked for a placement") {
    val found = planned(placedOn(1, 0, 1))
    assert(found.exists(_.taskOf.exists(_.sameElements(Array(1, 0, 1)))), found)
  }

  Seq[(String, Either[String, Plan], String)](
    ("missing row times", attributed(Array.emptyByteArray), "column row_ns"),
    (
      "negative row times",
      attributed(ShardColumns.encode("row_ns" -> Array(1L, -1L, 0L))),
      "the time of a row is negative"
    ),
    ("no placement", planned(Array.emptyByteArray), "column task"),
    ("a placement that cannot be decoded", planned(Array.fill[Byte](100)(7)), "column task cannot be read"),
    ("another column", planned(ShardColumns.encode("tasks" -> Array(0L, 0L, 0L))), "column task is missing"),
    ("one shard missing", planned(placedOn(0, 1)), "column task must have 3 numbers"),
    ("a task that does not exist", planned(placedOn(0, 1, 2)), "a shard is placed on task 2, but there are 2 tasks"),
    ("a negative task", planned(placedOn(0, -1, 1)), "a shard is placed on task -1"),
    ("more tasks than allowed", planned(placedOn(0, 1, 2), tasks = 3), "tasks must be a number from 1 to 2, found 3")
  ).foreach { case (name, found, error) =>
    test(s"impossible plan: $name") {
      assert(found.left.exists(e => e.startsWith("impossible plan: ") && e.contains(error)), found)
    }
  }

  test("a plan that answers the question is accepted") {
    assert(answer(_ => ()) == Right(Plan(9, 3, "best")))
  }

  Seq[(String, ObjectNode => Unit, String)](
    ("another run", _.put("run", new UUID(3, 5).toString): Unit, s"run must be $run"),
    ("another region", _.put("region", 2): Unit, "region must be 1, found 2"),
    ("another batch", _.put("batch", 8): Unit, "batch must be 9, found 8"),
    ("no batch", _.remove("batch"): Unit, "batch must be 9, found none"),
    ("no task", _.put("tasks", 0): Unit, "tasks must be a number from 1 to 3, found 0"),
    ("more tasks than shards", _.put("tasks", 4): Unit, "tasks must be a number from 1 to 3, found 4"),
    ("tasks that are not a number", _.put("tasks", "3"): Unit, "tasks must be"),
    ("half a task", _.put("tasks", 2.5): Unit, "tasks must be"),
    ("no reason", _.remove("reason"): Unit, "reason must be a string")
  ).foreach { case (name, change, error) =>
    test(s"impossible plan: $name") {
      val found = answer(change)
      assert(found.left.exists(e => e.startsWith("impossible plan: ") && e.contains(error)), found)
    }
  }

  test("a refusal contains the planner's reason") {
    assert(answer(_.put("reason", "no such shard"), FrameKind.Refused) == Left("the planner refused: no such shard"))
    assert(answer(_ => (), FrameKind.Welcome).isLeft)
  }

  private val homing = Homing(
    1.05,
    ExecutorSet(Vector("executor_h_1", "executor_h_2"), Vector(2, 4)),
    changed = true,
    Seq(0, 2),
    Array(1, ExecutorSet.Unknown, 0),
    MoveCost(1000, 2),
    Array(7L, 0L, 9L)
  )

  test("executors are described by their cores; a shard without a home gets their count as its home") {
    val measured = asked.copy(homing = Some(homing))
    assert(PlanMessages.head(measured).toString.endsWith(
      """"homing":{"theta":1.05,"changed":true,"bytes_per_ms":1000.0,"move_ms":2.0,""" +
        """"executors":["executor_h_1","executor_h_2"],"cores":[2,4],"tasks":[0,2]}}"""
    ))
    val body = PlanMessages.body(measured)
    assert(ShardColumns.decode(body, "home", 3).exists(_.sameElements(Array(1L, 2L, 0L))))
    assert(ShardColumns.decode(body, "state_bytes", 3).exists(_.sameElements(homing.stateBytes)))
  }

  private def homed(
      home: Seq[Long],
      reason: Option[String] = Some("balanced"),
      executorTasks: Seq[Any] = Nil
  ): Either[String, Plan] = {
    val head = PlannerFrame.newHead()
      .put("run", run.toString).put("region", 1L).put("batch", 9L).put("tasks", 2).put("reason", "as it was")
    reason.foreach(head.put("homes_reason", _))
    if (executorTasks.nonEmpty) {
      val array = head.putArray("executor_tasks")
      executorTasks.foreach {
        case count: Int => array.add(count)
        case other => array.add(other.toString)
      }
    }
    val body = ShardColumns.encode("home" -> home.toArray)
    PlanMessages.plan(PlannerFrame(FrameKind.Planned, 1, head, body), asked.copy(homing = Some(homing)))
  }

  test("a plan for executors names executors, for moving shards only") {
    val homes = homed(Seq(1, 0, 1)).map(_.homes.get)
    assert(homes.map(_.to.toSeq) == Right(Seq(null, "executor_h_1", "executor_h_2")))
    assert(homes.map(_.from.toSeq) == Right(Seq("executor_h_2", null, "executor_h_1")))
    assert(homes.map(_.tasks) == Right(Map.empty))
    assert(homed(
      Seq(1, 1, 1),
      executorTasks = Seq(0, 2)
    ).map(_.homes.map(_.tasks)) == Right(Some(Map("executor_h_2" -> 2))))
    assert(homes.map(_.reason) == Right("balanced") && answer(_ => ()).map(_.homes) == Right(None))
  }

  test("a plan for executors may be one batch late, but no later") {
    val plan = homed(Seq(1, 0, 0)).toOption.get
    assert(plan.batch == 9L && Seq(10L, 11L).forall(plan.isFresh) && !plan.isFresh(12L))
  }

  Seq[(String, Either[String, Plan], String)](
    ("an executor that does not exist", homed(Seq(1, 2, 0)), "a shard is placed on executor 2, but there are 2"),
    ("too few shards", homed(Seq(1, 0)), "column home must have 3 numbers"),
    ("no reason", homed(Seq(1, 0, 0), None), "homes_reason must be a string"),
    (
      "one executor missing",
      homed(Seq(0, 0, 0), executorTasks = Seq(2)),
      "executor_tasks must divide 2 tasks among 2 executors"
    ),
    (
      "one task too many",
      homed(Seq(1, 0, 0), executorTasks = Seq(1, 2)),
      "executor_tasks must divide 2 tasks among 2 executors"
    ),
    (
      "a negative number of tasks",
      homed(Seq(1, 1, 1), executorTasks = Seq(-1, 3)),
      "executor_tasks must divide 2 tasks among 2 executors"
    ),
    ("tasks that are not a number", homed(Seq(1, 1, 1), executorTasks = Seq("1", 1)), "executor_tasks must divide 2"),
    (
      "an executor without tasks",
      homed(Seq(1, 0, 1), executorTasks = Seq(0, 2)),
      "placed on executor 0, which has no task"
    )
  ).foreach { case (problem, found, why) =>
    test(s"impossible plan for executors: $problem") {
      assert(found.left.exists(m => m.startsWith("impossible plan: ") && m.contains(why)), found)
    }
  }
}
