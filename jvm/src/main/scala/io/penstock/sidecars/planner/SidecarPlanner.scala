package io.penstock.sidecars.planner

import java.util.UUID

import io.penstock.control.{Demand, Measured, Plan, Planner, Scaled}

/** A planner whose plans are made by the planner sidecar. */
final class SidecarPlanner(sidecar: PlannerSidecar) extends Planner {
  private val newest = new java.util.LinkedHashMap[(UUID, Long), Either[String, Plan]](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[(UUID, Long), Either[String, Plan]]): Boolean =
      size > SidecarPlanner.MaxRegions
  }

  override def learn(measured: Measured): Unit = {
    val key = (measured.run, measured.region)
    newest.synchronized(newest.putIfAbsent(key, Left(PlannerSidecar.Late)))
    sidecar.ask(FrameKind.Measured, PlanMessages.head(measured), PlanMessages.body(measured)) { answer =>
      val plan = answer.flatMap(PlanMessages.plan(_, measured))
      newest.synchronized {
        // If the planner is only late, the older plan is kept. If it has failed, the older plan is dropped.
        val failed = answer.left.exists(_ != PlannerSidecar.Late)
        if (plan.isRight || failed || !newest.get(key).isRight) newest.put(key, plan)
      }: Unit
    }
  }

  override def plan(run: UUID, region: Long): Either[String, Plan] =
    newest.synchronized(Option(newest.get((run, region)))).getOrElse(Left("nothing measured yet"))

  override def scale(demand: Demand)(use: Either[String, Scaled] => Unit): Unit =
    sidecar.ask(FrameKind.Demand, ScalingMessages.head(demand), Array.emptyByteArray) { answer =>
      use(answer.flatMap(ScalingMessages.scaled(_, demand)))
    }

  override def held: Map[String, Long] =
    Map("plans" -> newest.synchronized(newest.size.toLong), "threads" -> sidecar.liveThreads.toLong)

  override def close(): Unit = {
    sidecar.close()
    newest.synchronized(newest.clear())
  }
}

private object SidecarPlanner {
  val MaxRegions = 256
}
