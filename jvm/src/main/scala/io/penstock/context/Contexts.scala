package io.penstock.context

import io.penstock.errors.PenstockException

/** The context of one role in this JVM: at most one at a time, because a JVM runs one application at a time. */
sealed abstract class Contexts(role: String) {
  @volatile private var running: ProcessContext = _

  /** Starts an empty context. One that an application has left whose start failed is shut down first. */
  def start(): ProcessContext = synchronized {
    find.foreach(_.shutdown())
    running = new ProcessContext(role, this)
    running
  }

  /**
   * The context of the running application.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NOT_ENABLED if there is none
   */
  def current: ProcessContext = {
    val context = running
    if (context == null) throw Contexts.missing(s"this process has no $role context")
    context
  }

  /** The context of the running application, if there is one. */
  def find: Option[ProcessContext] = Option(running)

  private[context] def ended(context: ProcessContext): Unit = synchronized(if (running eq context) running = null)
}

/** The context of the driver. In local mode, the JVM has an [[ExecutorContext]] as well. */
object DriverContext extends Contexts("driver")

/** The context of the executor. */
object ExecutorContext extends Contexts("executor")

private object Contexts {
  def missing(what: String): PenstockException = new PenstockException(
    "PENSTOCK_NOT_ENABLED",
    s"$what: Penstock's plugin does not run here, or the application has ended. Start the application with " +
      "spark.plugins=io.penstock.PenstockPlugin, on the driver and on every executor"
  )
}
