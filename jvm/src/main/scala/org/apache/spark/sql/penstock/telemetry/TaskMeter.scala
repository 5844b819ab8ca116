package org.apache.spark.sql.penstock.telemetry

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.TaskContext

import io.penstock.telemetry._

/**
 * Books the time of one task's rows to their shards. Several iterators of a task share it, from the read of its input
 * upwards: while a row that one of them handed over is processed, the others above it are silent, so that no time is
 * booked twice.
 */
final class TaskMeter private (region: RegionLoad, attempt: Long, val stateInUse: StateInUse) {
  import region.layout

  /** Whether every row of the input is counted for its key, since times do not tell. */
  val countsAll: Boolean = region.countsAll
  private val startedNs = System.nanoTime()
  private val thread = Thread.currentThread
  private val busyNs = new Array[Long](layout.shards)
  private val keys = new KeySketch
  private val times = Option.when(region.operators.size > 1)(new OperatorTimes(region.operators, layout.shards))
  private val atEnd = mutable.ArrayBuffer.empty[() => Unit]
  private val steps = mutable.ArrayBuffer.empty[SampledTimes]
  private val interruptions = Interruptions.ofThisThread()
  private var interruptedNs = 0L
  private var readNs = startedNs
  private var inRow = false
  private var waitedNs = 0L

  /** Whether the caller runs on the task's own thread: what happens on another is not timed. */
  def isOfThisThread: Boolean = Thread.currentThread eq thread

  /** Whether the caller may hand over a row in its own name: then it must call [[leave]] when it is asked for the next. */
  def enter(): Boolean = !inRow && {
    inRow = true
    true
  }

  def leave(): Unit = inRow = false

  /** Times of rows in one of the steps that each row takes. */
  def step(): SampledTimes = {
    val of = new SampledTimes(layout.shards)
    steps += of
    of
  }

  /**
   * Books the time of rows to a key and its shard.
   *
   * @param isInput
   *   whether rows are counted here, unless all are
   */
  def book(of: SampledTimes, hash: Int, reading: Reading, isInput: Boolean)(text: => String): Unit = {
    val shard = layout.shardOf(hash)
    busyNs(shard) += reading.ns
    of.add(shard, reading.ns, reading.rows)
    keys.add(
      hash,
      reading.ns,
      if (isInput && !countsAll) reading.rows else 0L,
      if (countsAll) 1L else reading.weight
    )(text)
  }

  /** Counts a row of the input, where all are counted. */
  def count(hash: Int)(text: => String): Unit = keys.add(hash, 0L, 1L, 1L)(text)

  /** A row is timed from now on: what interrupts the thread from here is told by [[undisturbed]]. */
  def watch(nowNs: Long): Unit = if (nowNs - readNs > TaskMeter.FreshNs) readInterruptions(nowNs): Unit

  /** What is left of a time that ends now, and is longer than can be without a look, less what interrupted the thread. */
  def undisturbed(ns: Long, nowNs: Long): Long = math.max(1L, ns - readInterruptions(nowNs))

  private def waiting[T](what: => T): T = {
    val startNs = System.nanoTime()
    readInterruptions(startNs)
    val interruptedBeforeNs = interruptedNs
    try what
    finally {
      val nowNs = System.nanoTime()
      readInterruptions(nowNs)
      // Once it could go on, it may have had to wait for a core: that is told as well, and counts once.
      waitedNs += math.max(0L, nowNs - startNs - (interruptedNs - interruptedBeforeNs))
    }
  }

  /** What has come since the last reading. */
  private def readInterruptions(nowNs: Long): Long = {
    val since = interruptions.sinceLast(nowNs)
    interruptedNs += since
    readNs = nowNs
    since
  }

  /** One operator's part in the time of rows: nothing where it is the only one, or none of the region. */
  private[telemetry] def partOf(operator: Long, counts: Boolean): OperatorPart =
    (for (all <- times; index <- all.indexOf(operator)) yield new TimedPart(all, index, counts, layout))
      .getOrElse(Undivided)

  /** What is to be done when the task has ended, before what was measured is told. */
  def onEnd(settle: () => Unit): Unit = atEnd += settle

  /** Which rows one of the iterators times. */
  def spacing(): SampleSpacing = new SampleSpacing(attempt, TaskMeter.Budget, TaskMeter.TimingNs)

  private def load(inputWaitNs: Long): TaskLoad = {
    atEnd.foreach(_.apply())
    val shards = busyNs.indices.filter(busyNs(_) > 0L).toArray
    val nowNs = System.nanoTime()
    // Another thread may end the task.
    if (isOfThisThread) readInterruptions(nowNs)
    interruptions.close()
    TaskLoad(
      shards,
      shards.map(busyNs(_)),
      RowSamples(
        shards.map(SampledTimes.samples(steps, _)),
        shards.map(SampledTimes.rowNs(steps, _)),
        SampledTimes.deviationNs(steps)
      ),
      nowNs - startedNs,
      inputWaitNs + waitedNs,
      interruptedNs,
      keys.heavy(layout.shardOf),
      times.fold(Seq.empty[TaskOperatorLoad])(_.loads(busyNs))
    )
  }
}

/**
 * A reading of the clock.
 *
 * @param ns
 *   time of all that it stands for
 * @param rows
 *   that it stands for
 * @param weight
 *   readings that it stands for
 */
final private[telemetry] case class Reading(ns: Long, rows: Long, weight: Long)

object TaskMeter {

  /** Share of a task's time that timing its rows may take. */
  private val Budget = 0.01

  /** Two readings of the clock, and the row's shard. */
  private val TimingNs = 200L

  /** For so long the last reading of interruptions serves. */
  private val FreshNs = 1000000L

  // By context: attempts of two applications in one JVM may have the same numbers.
  private val meters = new ConcurrentHashMap[TaskContext, TaskMeter]()
  private val inUse = new ConcurrentHashMap[TaskContext, StateInUse]()

  /** The meter of the running task; what it measured is in `region` when the task has ended. */
  def of(context: TaskContext, region: RegionLoad): TaskMeter = {
    Option(meters.get(context)).getOrElse {
      val meter = new TaskMeter(region, context.taskAttemptId(), stateInUse(context))
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

  /**
   * Waits for the driver on behalf of a task: the last of a batch's tasks to commit waits until all of the batch is on record,
   * which is no work of its rows.
   */
  def waiting[T](context: TaskContext)(what: => T): T = {
    val meter = Option(context).flatMap(c => Option(meters.get(c))).filter(_.isOfThisThread)
    meter.fold(what)(_.waiting(what))
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
