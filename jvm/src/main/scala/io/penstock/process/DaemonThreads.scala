package io.penstock.process

import java.util.concurrent.ThreadFactory

/** Factories of threads that do not keep the JVM alive. */
object DaemonThreads {

  /** A factory whose threads all have this name. */
  def named(name: String): ThreadFactory = task => {
    val thread = new Thread(task, name)
    thread.setDaemon(true)
    thread
  }
}
