package io.penstock.benchmarks

import java.util.UUID
import java.util.concurrent.TimeoutException
import java.util.concurrent.locks.LockSupport

import io.penstock.control.{Measured, Placing, Planner}
import io.penstock.routing.PublishedPolicy

/**
 * Measures the time from the end of a batch to its plan. As in a running query, measurements go to the planner sidecar,
 * which answers with a plan. Loads change from batch to batch.
 */
object Loop {
  private val Tasks = 16
  private val PollNs = 10000L
  private val TimeoutNs = 150L * 1000 * 1000 * 1000

  def run(args: Arguments, report: Report): Unit =
    for (shards <- Seq(256, 4096); policy <- None +: PublishedPolicy.all.map(_.plannedBy)) {
      val run = UUID.randomUUID()
      val random = new java.util.SplittableRandom(shards.toLong)
      var taskOf = Array.tabulate(shards)(_ % Tasks)
      val batches = args.int("warm-up", 20) + args.int("rounds", 100)
      val ms = (0 until batches).map { batch =>
        val measured = batchOf(run, batch.toLong, policy, taskOf, random)
        val start = System.nanoTime()
        Planner.current.learn(measured)
        val plan = planOf(measured, start)
        val took = (System.nanoTime() - start) / 1e6
        taskOf = plan.getOrElse(taskOf)
        took
      }
      val label = Map("bench" -> "loop", "call" -> s"${policy.getOrElse("tasks")}, $shards shards")
      report.line(label, ms.drop(args.int("warm-up", 20)).map(took => Map("planMs" -> took)))
    }

  /** Waits for the plan of a batch, and returns the task of each shard. */
  private def planOf(measured: Measured, since: Long): Option[Array[Int]] = {
    var found = Planner.current.plan(measured.run, measured.region)
    while (!found.exists(_.batch == measured.batch)) {
      if (System.nanoTime() - since > TimeoutNs)
        throw new TimeoutException(s"no plan for batch ${measured.batch} within 150 s; the newest is $found")
      LockSupport.parkNanos(PollNs)
      found = Planner.current.plan(measured.run, measured.region)
    }
    found.toOption.flatMap(_.taskOf)
  }

  /** A batch with about a second of work, in which the load of each shard is 0.5 to 1.5 times the mean. */
  private def batchOf(
      run: UUID,
      batch: Long,
      policy: Option[String],
      taskOf: Array[Int],
      random: java.util.SplittableRandom
  ): Measured = {
    val shards = taskOf.length
    val rows = Array.fill(shards)(random.nextLong(1000L, 3000L))
    val busyNs = rows.map(_ * (1000L * 1000 * 1000 / 2000L / shards) * Tasks)
    val tasksMs = new Array[Double](Tasks)
    taskOf.indices.foreach(s => tasksMs(taskOf(s)) += busyNs(s) / 1e6)
    Measured(
      run,
      0L,
      batch,
      Tasks,
      Tasks,
      tasksMs.max + 20.0,
      tasksMs.toSeq,
      rows,
      busyNs,
      plansTasks = policy.isEmpty,
      policy.map(Placing(_, 1.05, Tasks, taskOf, Array.fill(shards)(1L << 20)))
    )
  }
}
