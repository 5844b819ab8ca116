package io.penstock.benchmarks

import java.lang.management.ManagementFactory
import java.nio.file.Path

import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress}

import com.sun.management.OperatingSystemMXBean
import io.penstock.Penstock
import io.penstock.benchmarks.source.Gate

/**
 * A running query of one side, which computes a batch when told to.
 *
 * @param label
 *   what tells this case from the others of its comparison
 * @param every
 *   takes part in one round out of `every`: slow sides need fewer batches. Odd, so that the order of its turns changes
 * @param first
 *   batch that the query starts with
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

  /** Sets an option for the batches to come. */
  def set(name: String, value: String): Unit = Penstock.setOption(query, name, value)

  /**
   * Runs one batch to its end.
   *
   * @param tasks
   *   that its stateful stage must have
   * @throws IllegalStateException
   *   where the side is not what its name says, or where one turn was more than one batch
   * @throws java.util.concurrent.TimeoutException
   *   where the batch takes more than five minutes
   */
  def step(watch: StageWatch, tasks: Int = side.tasks): Sample = {
    val before = Contender.processorNs()
    Gate.open(gate)
    val progress = await(next)
    val processorNs = Contender.processorNs() - before
    if (Gate.batches(gate) != next + 1) throw new IllegalStateException(s"${side.name}: another user of gate $gate")
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
        throw new java.util.concurrent.TimeoutException(s"${side.name}: batch $batch did not end within 300 s")
      Thread.sleep(5)
      // An idle query reports as well, with the next batch's number: rows tell the two apart.
      found = query.recentProgress.reverseIterator.find(p => p.batchId == batch && p.numInputRows > 0)
    }
    found.get
  }
}

object Contender {
  private val system = ManagementFactory.getPlatformMXBean(classOf[OperatingSystemMXBean])

  /** Processor time that this process has used, all threads, in ns. */
  private def processorNs(): Long = system.getProcessCpuTime
}

/**
 * One measured batch.
 *
 * @param stage
 *   the one that ran the stateful operators
 * @param processorMs
 *   processor time of the whole process, driver and tasks, compiler and collector, from the turn's start to its end
 */
final case class Sample(
    progress: StreamingQueryProgress,
    stages: Seq[StageWatch.Stage],
    stage: StageWatch.Stage,
    processorMs: Long
)
