package io.penstock.faults

import java.io.IOException
import java.nio.file.{FileAlreadyExistsException => Taken, Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileAlreadyExistsException

/**
 * The faults that have not struck yet. All processes of an application share them.
 *
 * @param strikes
 *   Directory with one file for each fault that has struck, so that a fault strikes only once
 */
final class FaultPlan(faults: Seq[Fault], strikes: Path) {

  /**
   * Applies the fault that is planned for this moment, if there is one.
   *
   * @param losing
   *   Callback that reports a map output as lost
   */
  def at(moment: Fault.Moment, place: String, batch: Option[Long], losing: () => Unit = FaultPlan.nothingToLose): Unit =
    faults.iterator.zipWithIndex
      .filter { case (f, _) => f.moment == moment && f.place == place && (f.batch.isEmpty || f.batch == batch) }
      .find { case (f, index) => claim(f, index) }
      .foreach { case (f, _) => strike(f, s"$place/${batch.fold("")(_.toString)}", losing) }

  /** Whether the plan ends a process in an orderly way in the given action on the given batch. */
  def ends(action: String, batch: Option[Long]): Boolean = faults.exists(f =>
    f.effect.isInstanceOf[Fault.EndOrderly] && f.place == action && (f.batch.isEmpty || f.batch == batch)
  )

  private def claim(fault: Fault, index: Int): Boolean =
    try {
      Files.writeString(Files.createFile(strikes.resolve(index.toString)), fault.toString)
      true
    } catch { case _: Taken => false }

  private def strike(fault: Fault, at: String, losing: () => Unit): Unit = fault.effect match {
    case Fault.Fail => throw new IOException(s"${FaultPlan.OnPurpose}: ${fault.moment.name} $at")
    case Fault.Exists => throw new FileAlreadyExistsException(s"${FaultPlan.OnPurpose}: $at exists")
    case Fault.Die => Runtime.getRuntime.halt(137)
    case Fault.EndOrderly(afterMs) => FaultPlan.endOrderly(afterMs)
    case Fault.EndSidecars => FaultPlan.endSidecars()
    case Fault.Delay(ms) => Thread.sleep(ms)
    case Fault.LoseMapOutput => losing()
  }
}

object FaultPlan {
  val Faults = "test.faults.plan"
  val Strikes = "test.faults.strikes"

  /** Prefix of the message of every injected error. */
  private val OnPurpose = "on purpose"

  /** Parts of the command lines that identify the sidecars of drivers and executors. */
  private val Sidecars = Seq("penstock.sidecars.planner", "penstock.sidecars.transfer")

  /** Whether this process is about to end in an orderly way. Errors from then on are expected. */
  @volatile var isEnding: Boolean = false

  private val nothingToLose = () => throw new IllegalArgumentException("only a task can lose a map output")

  /** Runs in a separate thread, because the caller continues meanwhile. */
  private def endOrderly(afterMs: Long): Unit = {
    isEnding = true
    val thread = new Thread(
      () => {
        Thread.sleep(afterMs)
        System.exit(143)
      },
      "ends-on-purpose"
    )
    thread.setDaemon(true)
    thread.start()
  }

  private def endSidecars(): Unit = ProcessHandle.current().children()
    .filter(child => Sidecars.exists(child.info.commandLine.orElse("").contains(_)))
    .forEach(_.destroyForcibly(): Unit)

  /** The plan that a configuration contains. Without one, no fault strikes. */
  def of(conf: Configuration): FaultPlan = of(conf.get(_))

  def of(conf: String => String): FaultPlan = {
    val faults = Option(conf(Faults)).fold(Seq.empty[Fault])(_.split(';').toSeq.filter(_.nonEmpty).map(Fault.parse))
    new FaultPlan(faults, Path.of(if (faults.isEmpty) "" else conf(Strikes)))
  }

  /** Settings that contain a plan. */
  def settings(faults: Seq[Fault], strikes: Path): Map[String, String] =
    Map(Faults -> faults.mkString(";"), Strikes -> strikes.toString)

  /** Indices of the faults that have struck. */
  def struck(strikes: Path): Set[Int] = strikes.toFile.list.map(_.toInt).toSet
}
