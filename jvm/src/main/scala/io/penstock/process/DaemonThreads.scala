package io.penstock.process

import java.util.concurrent.ThreadFactory

/** Threads that do not keep the JVM alive. */
object DaemonThreads {

  /** Gives all its threads one name. */
  def named(name: String): ThreadFactory = task => {
    val thread = new Thread(task, name)
    thread.setDaemon(true)
    thread
  }
}
