package io.penstock.benchmarks.work

/** Processes that use the processor while this process runs, like others that share the machine. */
final class Burners private (processes: Seq[Process]) extends AutoCloseable {
  override def close(): Unit = processes.foreach(_.destroyForcibly().waitFor(): Unit)
}

object Burners {

  /** Starts processes. They end when this process has ended. */
  def start(count: Int): Burners =
    new Burners(Seq.fill(count)(new ProcessBuilder("sh", "-c", "while kill -0 $PPID; do :; done").start()))
}
