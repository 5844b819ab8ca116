package io.penstock.benchmarks

import java.io.PrintWriter
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

/** Writes samples: one line of JSON per case, with all its batches. Statistics are computed by `penstock bench`. */
final class Report(file: Path) extends AutoCloseable {
  private val mapper = new ObjectMapper()
  private val out = new PrintWriter(Files.newBufferedWriter(file))

  /**
   * Writes the samples of a contender.
   *
   * @param extra
   *   additional figures of each batch, in the order of the samples
   * @param label
   *   additional labels that distinguish these batches from others of the same contender
   */
  def write(
      bench: String,
      contender: Contender,
      samples: Seq[Sample],
      extra: Seq[Map[String, Any]] = Nil,
      label: Map[String, String] = Map.empty
  ): Unit = {
    val batches = samples.zipAll(extra, null, Map.empty[String, Any]).map { case (s, e) => batch(s) ++ e }
    line(contender.label ++ label + ("bench" -> bench), batches)
  }

  /**
   * Writes a case.
   *
   * @param label
   *   labels that identify the case
   * @param samples
   *   figures by name, for each batch or other measured unit
   */
  def line(label: Map[String, String], samples: Seq[Map[String, Any]]): Unit = {
    out.println(mapper.writeValueAsString(java(Map("case" -> label, "batches" -> samples))))
    out.flush()
  }

  override def close(): Unit = out.close()

  private def batch(s: Sample): Map[String, Any] = Map(
    "batch" -> s.progress.batchId,
    "ms" -> s.progress.durationMs.asScala.toMap,
    "stages" -> s.stages.map(g => Map[String, Any]("tasks" -> g.tasks, "ms" -> g.ms)),
    "stage" -> s.stage.ms,
    "processor" -> s.processorMs,
    "rows" -> s.stage.rows,
    "operators" -> s.progress.stateOperators.toSeq.map(o =>
      Map[String, Any](
        "rows" -> o.numRowsTotal,
        "updated" -> o.numRowsUpdated,
        "removed" -> o.numRowsRemoved,
        "updatesMs" -> o.allUpdatesTimeMs,
        "removalsMs" -> o.allRemovalsTimeMs,
        "commitMs" -> o.commitTimeMs,
        "memory" -> o.memoryUsedBytes
      )
    )
  )

  private def java(value: Any): Any = value match {
    case m: Map[_, _] => m.map { case (k, v) => k.toString -> java(v) }.asJava
    case s: Seq[_] => s.map(java).asJava
    case other => other
  }
}
