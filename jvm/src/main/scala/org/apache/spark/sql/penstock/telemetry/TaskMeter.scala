package org.apache.spark.sql.penstock.telemetry

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.TaskContext

import io.penstock.context.Component
import io.penstock.telemetry._

/**
 * Books the time of one task's rows to their shards. Several iterators of a task share the meter, from the one that
 * reads the input upwards. While a row that one of them handed over is processed, the iterators above it do not time
 * rows, so that no time is booked twice.
 */
final class TaskMeter private (region: RegionLoad, attempt: Long, val stateInUse: StateInUse) {
  import region.layout

  /** Whether every input row is counted for its key, because times do not reflect the cost of rows. */
  val countsAll: Boolean = region.countsAll
  private val startedNs = System.nanoTime()
  private val thread = Thread.currentThread
  private val busyNs = new Array[Long](layout.shards)
  private val keys = new KeySketch
  private val times = Option.when(region.operators.size > 1)(new OperatorTimes(region.operators, layout.shards))
  private val atEnd = mutable.ArrayBuffer.empty[() => Unit]
  private val steps = mutable.ArrayBuffer.empty[SampledTimes]
  private val interruptions = Interruptions.ofThisThread()
  private var inRow = false
  private var waitedNs = 0L

  /** Whether the caller runs on the task's own thread. Rows on other threads are not timed. */
  def isOfThisThread: Boolean = Thread.currentThread eq thread

  /**
   * Claims the row that the caller is about to hand over. If this returns true, the caller must call [[leave]] when the
   * next row is requested.
   */
  def enter(): Boolean = !inRow && {
    inRow = true
    true
  }

  def leave(): Unit = inRow = false

  /** Returns a new holder for the times of one of the steps that each row takes. */
  def step(): SampledTimes = {
    val stepTimes = new SampledTimes(layout.shards)
    steps += stepTimes
    stepTimes
  }

  /**
   * Books the time of rows to a key and its shard.
   *
   * @param stepTimes
   *   Holder of the times of the step, from [[step]]
   * @param hash
   *   Hash of the key
   * @param reading
   *   The time
   * @param isInput
   *   Whether the reading's rows are input rows, and are counted here unless every input row is counted
   * @param text
   *   Text of the key; evaluated only if needed
   */
  def book(stepTimes: SampledTimes, hash: Int, reading: Reading, isInput: Boolean)(text: => String): Unit = {
    val shard = layout.shardOf(hash)
    busyNs(shard) += reading.ns
    stepTimes.add(shard, reading.ns, reading.rows)
    keys.add(
      hash,
      reading.ns,
      if (isInput && !countsAll) reading.rows else 0L,
      if (countsAll) 1L else reading.weight
    )(text)
  }

  /** Counts an input row. Used if every input row is counted. */
  def count(hash: Int)(text: => String): Unit = keys.add(hash, 0L, 1L, 1L)(text)

  /**
   * Called when the timing of a row begins. [[undisturbed]] excludes interruptions of the thread from here on.
   *
   * @return
   *   Time from which the row is timed
   */
  def begin(nowNs: Long): Long =
    if (nowNs - interruptions.atNs <= TaskMeter.FreshNs) nowNs
    else {
      interruptions.sinceLast(nowNs): Unit
      interruptions.atNs
    }

  /** A time that ends now, without the interruptions of the thread. Called for times that are unusually long. */
  def undisturbed(ns: Long, nowNs: Long): Long = math.max(1L, ns - interruptions.sinceLast(nowNs))

  private def waiting[T](body: => T): T = {
    interruptions.sinceLast(System.nanoTime()): Unit
    val (startNs, interruptedBeforeNs) = (interruptions.atNs, interruptions.totalNs)
    try body
    finally {
      val nowNs = System.nanoTime()
      interruptions.sinceLast(nowNs): Unit
      // After the wait the thread may also have waited for a core. That is counted as an interruption, so do not count
      // it twice.
      waitedNs += math.max(0L, nowNs - startNs - (interruptions.totalNs - interruptedBeforeNs))
    }
  }

  /**
   * Part of an operator in the time of rows. It ignores all events if the operator is the region's only one or belongs
   * to another region.
   */
  private[telemetry] def partOf(operator: Long, counts: Boolean): OperatorPart =
    (for (t <- times; index <- t.indexOf(operator)) yield new TimedPart(t, index, counts, layout))
      .getOrElse(Undivided)

  /** Registers an action to run when the task has ended, before its measurements are reported. */
  def onEnd(settle: () => Unit): Unit = atEnd += settle

  /** Decides which rows one of the iterators times. */
  def spacing(): SampleSpacing = new SampleSpacing(attempt, TaskMeter.Budget, TaskMeter.TimingNs)

  private def load(inputWaitNs: Long): TaskLoad = {
    atEnd.foreach(_.apply())
    val shards = busyNs.indices.filter(busyNs(_) > 0L).toArray
    val nowNs = System.nanoTime()
    // The task may end on another thread, where interruptions cannot be read.
    if (isOfThisThread) interruptions.sinceLast(nowNs): Unit
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
      interruptions.totalNs,
      keys.heavy(layout.shardOf),
      times.fold(Seq.empty[TaskOperatorLoad])(_.loads(busyNs))
    )
  }
}

/**
 * A time reading.
 *
 * @param ns
 *   Time of all rows that the reading stands for
 * @param rows
 *   Number of rows that the reading stands for
 * @param weight
 *   Number of readings that the reading stands for
 */
final private[telemetry] case class Reading(ns: Long, rows: Long, weight: Long)

/**
 * The meters of the tasks that run in this JVM. An object, because an entry belongs to its task, which removes it at its
 * end. The executor context owns it, and removes what tasks have left that outlive the application.
 */
object TaskMeter extends Component {

  /** Share of a task's time that timing its rows may take. */
  private val Budget = 0.01

  /** Time to read the clock twice and to compute the shard of the row. */
  private val TimingNs = 200L

  /** Maximum age of a reading of interruptions that is still used. */
  private val FreshNs = 1000000L

  // Keyed by context, because attempts of two applications in one JVM may have the same ids.
  private val meters = new ConcurrentHashMap[TaskContext, TaskMeter]()
  private val inUse = new ConcurrentHashMap[TaskContext, StateInUse]()

  /** The meter of the running task. Its measurements are added to `region` when the task ends. */
  def of(context: TaskContext, region: RegionLoad): TaskMeter = {
    Option(meters.get(context)).getOrElse {
      val meter = new TaskMeter(region, context.taskAttemptId(), stateInUse(context))
      meters.put(context, meter)
      context.addTaskCompletionListener[Unit] { ended =>
        meters.remove(context)
        // Otherwise the task's read metrics are merged only after this listener.
        ended.taskMetrics().mergeShuffleReadMetrics()
        val waitMs = ended.taskMetrics().shuffleReadMetrics.fetchWaitTime
        region.add((ended.partitionId(), meter.load(waitMs * 1000000L)))
      }
      meter
    }
  }

  /**
   * Runs a wait for the driver on behalf of a task, and does not count it as work on rows. The last task of a batch to
   * commit waits until the complete batch is recorded.
   */
  def waiting[T](context: TaskContext)(body: => T): T = {
    val meter = Option(context).flatMap(c => Option(meters.get(c))).filter(_.isOfThisThread)
    meter.fold(body)(_.waiting(body))
  }

  /**
   * Records which keys' state a task uses. It is shared by the task's stores, which are opened first, and its meter.
   */
  def stateInUse(context: TaskContext): StateInUse = {
    Option(inUse.get(context)).getOrElse {
      val ofTask = new StateInUse
      inUse.put(context, ofTask)
      context.addTaskCompletionListener[Unit](_ => inUse.remove(context))
      ofTask
    }
  }

  /** Number of entries that are kept for running tasks of this JVM. */
  def size: Int = meters.size() + inUse.size()

  override def held: Map[String, Long] = Map("meters" -> meters.size.toLong, "states in use" -> inUse.size.toLong)

  override def close(): Unit = {
    meters.clear()
    inUse.clear()
  }
}
