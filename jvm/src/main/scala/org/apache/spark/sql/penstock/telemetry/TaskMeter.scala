package org.apache.spark.sql.penstock.telemetry

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.TaskContext

import io.penstock.sharding.Layout
import io.penstock.telemetry.{KeySketch, SampleSpacing, StateInUse, TaskLoad, TaskOperatorLoad}

/**
 * Books the time of one task's rows to their shards. Several iterators of a task share it, from the read of its input
 * upwards: while a row that one of them handed over is processed, the others above it are silent, so that no time is
 * booked twice.
 */
final class TaskMeter private (layout: Layout, operatorIds: Seq[Long], attempt: Long, val stateInUse: StateInUse) {
  private val startedNs = System.nanoTime()
  private val thread = Thread.currentThread
  private val busyNs = new Array[Long](layout.shards)
  private val keys = new KeySketch
  private val times = Option.when(operatorIds.size > 1)(new OperatorTimes(operatorIds, layout.shards))
  private val atEnd = mutable.ArrayBuffer.empty[() => Unit]
  private var inRow = false

  /** Whether the caller runs on the task's own thread: what happens on another is not timed. */
  def isOfThisThread: Boolean = Thread.currentThread eq thread

  /** Whether the caller may hand over a row in its own name: then it must call [[leave]] when it is asked for the next. */
  def enter(): Boolean = !inRow && {
    inRow = true
    true
  }

  def leave(): Unit = inRow = false

  /** Books the time of rows to a key and its shard. */
  def book(hash: Int, ns: Long, rows: Long)(text: => String): Unit = {
    busyNs(layout.shardOf(hash)) += ns
    keys.add(hash, ns, rows)(text)
  }

  /** One operator's part in the time of rows: nothing where it is the only one, or none of the region. */
  private[telemetry] def partOf(operator: Long, counts: Boolean): OperatorPart =
    (for (all <- times; index <- all.indexOf(operator)) yield new TimedPart(all, index, counts, layout))
      .getOrElse(Undivided)

  /** What is to be done when the task has ended, before what was measured is told. */
  def onEnd(settle: () => Unit): Unit = atEnd += settle

  /** Which rows one of the iterators times. */
  def spacing(): SampleSpacing = new SampleSpacing(attempt, TaskMeter.Budget, TaskMeter.TimingNs)

  private def load(waitNs: Long): TaskLoad = {
    atEnd.foreach(_.apply())
    val shards = busyNs.indices.filter(busyNs(_) > 0L).toArray
    val heavy = keys.heavy(layout.shardOf)
    val operators = times.fold(Seq.empty[TaskOperatorLoad])(_.loads(busyNs))
    TaskLoad(shards, shards.map(busyNs(_)), System.nanoTime() - startedNs, waitNs, heavy, operators)
  }
}

object TaskMeter {

  /** Share of a task's time that timing its rows may take. */
  private val Budget = 0.01

  /** Two readings of the clock, and the row's shard. */
  private val TimingNs = 200L

  // By context: attempts of two applications in one JVM may have the same numbers.
  private val meters = new ConcurrentHashMap[TaskContext, TaskMeter]()
  private val inUse = new ConcurrentHashMap[TaskContext, StateInUse]()

  /** The meter of the running task; what it measured is in `region` when the task has ended. */
  def of(context: TaskContext, region: RegionLoad): TaskMeter = {
    Option(meters.get(context)).getOrElse {
      val meter = new TaskMeter(region.layout, region.operators, context.taskAttemptId(), stateInUse(context))
      meters.put(context, meter)
      context.addTaskCompletionListener[Unit] { ended =>
        meters.remove(context)
        // Else the task's metrics hear of its reads only after this.
        ended.taskMetrics().mergeShuffleReadMetrics()
        val waitMs = ended.taskMetrics().shuffleReadMetrics.fetchWaitTime
        region.add((ended.partitionId(), meter.load(waitMs * 1000000L)))
      }
      meter
    }
  }

  /** Which keys' state a task uses: of its stores, which come first, and of its meter. */
  def stateInUse(context: TaskContext): StateInUse = {
    Option(inUse.get(context)).getOrElse {
      val ofTask = new StateInUse
      inUse.put(context, ofTask)
      context.addTaskCompletionListener[Unit](_ => inUse.remove(context))
      ofTask
    }
  }

  /** What is kept of running tasks, over all of this JVM. */
  def size: Int = meters.size() + inUse.size()
}
