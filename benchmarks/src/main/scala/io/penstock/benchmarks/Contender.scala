package io.penstock.benchmarks

import java.lang.management.ManagementFactory
import java.nio.file.Path

import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress}

import com.sun.management.OperatingSystemMXBean
import io.penstock.Penstock
import io.penstock.benchmarks.source.Gate

/**
 * A running query of a side, which runs one batch at a time on request.
 *
 * @param label
 *   labels that identify this case in its comparison
 * @param every
 *   the contender takes part in one of `every` rounds, because slow sides need fewer batches. It must be odd, so that
 *   the order of its turns changes
 * @param first
 *   number of the query's first batch
 */
final class Contender(
    val side: Side,
    val label: Map[String, String],
    query: StreamingQuery,
    val gate: String,
    checkpoint: Path,
    val every: Int,
    first: Long
) {
  private var next = first

  /** Sets an option for the next batches. */
  def set(name: String, value: String): Unit = Penstock.setOption(query, name, value)

  /**
   * Runs one batch to its end.
   *
   * @param tasks
   *   number of tasks that the stateful stage must have
   * @throws IllegalStateException
   *   if the side is not what its name says, or more than one batch ran
   * @throws java.util.concurrent.TimeoutException
   *   if the batch takes more than five minutes
   */
  def step(watch: StageWatch, tasks: Int = side.tasks): Sample = {
    SourcesOfSettings.prepare(side)
    val before = Contender.processorNs()
    Gate.open(gate)
    val progress = await(next)
    val processorNs = Contender.processorNs() - before
    if (Gate.batches(gate) != next + 1)
      throw new IllegalStateException(s"side ${side.name}: gate $gate has another user")
    val stages = watch.of(query.id.toString, next)
    val stage = stages.filter(_.readsShuffle).last
    Evidence.check(side.copy(tasks = tasks), checkpoint, progress, stage)
    next += 1
    Sample(progress, stages, stage, processorNs / 1000000L)
  }

  def stop(): Unit = query.stop()

  private def await(batch: Long): StreamingQueryProgress = {
    val deadline = System.nanoTime() + 300L * 1000 * 1000 * 1000
    var found = Option.empty[StreamingQueryProgress]
    while (found.isEmpty) {
      query.exception.foreach(throw _)
      if (System.nanoTime() > deadline)
        throw new java.util.concurrent.TimeoutException(s"side ${side.name}: batch $batch did not end within 300 s")
      Thread.sleep(5)
      // An idle query also reports progress, with the next batch's number but without rows.
      found = query.recentProgress.reverseIterator.find(p => p.batchId == batch && p.numInputRows > 0)
    }
    found.get
  }
}

object Contender {
  private val system = ManagementFactory.getPlatformMXBean(classOf[OperatingSystemMXBean])

  /** Processor time of all threads of this process, in ns. */
  private def processorNs(): Long = system.getProcessCpuTime
}

/**
 * A measured batch.
 *
 * @param stage
 *   stage that ran the stateful operators
 * @param processorMs
 *   processor time of the process during the turn, including driver, tasks, compiler and garbage collector
 */
final case class Sample(
    progress: StreamingQueryProgress,
    stages: Seq[StageWatch.Stage],
    stage: StageWatch.Stage,
    processorMs: Long
)
