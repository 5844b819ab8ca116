package io.penstock.benchmarks.work

/** Processes that compute for as long as this one lives: others with whom the machine is shared. */
final class Burners private (processes: Seq[Process]) extends AutoCloseable {
  override def close(): Unit = processes.foreach(_.destroyForcibly().waitFor(): Unit)
}

object Burners {

  /** Starts some. They look whether this process is still there, and end if not. */
  def start(count: Int): Burners =
    new Burners(Seq.fill(count)(new ProcessBuilder("sh", "-c", "while kill -0 $PPID; do :; done").start()))
}
