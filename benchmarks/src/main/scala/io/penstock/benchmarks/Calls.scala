package io.penstock.benchmarks

import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import org.openjdk.jmh.results.RunResult
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.{ChainedOptionsBuilder, OptionsBuilder}

/** Measures single calls with JMH in this JVM. */
object Calls {

  /**
   * Measures methods of a benchmark and reports each.
   *
   * @param methods
   *   regular expression that matches the names of the methods
   * @param label
   *   labels that identify the result, besides the name of the method
   */
  def measure(report: Report, benchmark: Class[_], methods: String)(
      options: ChainedOptionsBuilder => ChainedOptionsBuilder
  )(label: RunResult => Map[String, String]): Unit = {
    val common = new OptionsBuilder()
      .include(s"${benchmark.getName.replace(".", "\\.")}\\.($methods)$$")
      .forks(0)
      .shouldFailOnError(true)
    new Runner(options(common).build()).run().asScala.foreach { result =>
      val params = result.getParams
      require(params.getTimeUnit == TimeUnit.NANOSECONDS, s"${params.getTimeUnit}")
      val scores =
        result.getBenchmarkResults.asScala.flatMap(_.getIterationResults.asScala).map(_.getPrimaryResult.getScore)
      val call = params.getBenchmark.split('.').last
      report.line(label(result) + ("call" -> call), scores.toSeq.map(ns => Map("ns" -> ns)))
    }
  }
}
