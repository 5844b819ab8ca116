package org.apache.spark.sql.penstock.integration.noise

import java.util.Random

/** A disturbance of a query's tasks while the query runs. */
sealed trait Disturbance {

  /** Starts the disturbance. Closing the result ends it. */
  def start(): AutoCloseable
}

object Disturbance {

  case object Nothing extends Disturbance {
    override def start(): AutoCloseable = () => ()
  }

  /** Processes that compute all the time, twice as many as there are cores. They end with this JVM. */
  case object Burners extends Disturbance {
    override def start(): AutoCloseable = {
      val burners = Seq.fill(2 * Runtime.getRuntime.availableProcessors)(shell("while kill -0 $PPID; do :; done"))
      () => burners.foreach(_.destroyForcibly().waitFor(): Unit)
    }
  }

  /** The JVM is stopped for 50 ms, four times a second. */
  case object Stops extends Disturbance {
    override def start(): AutoCloseable = {
      val stopper = shell("while kill -STOP $PPID; do sleep 0.05; kill -CONT $PPID; sleep 0.2; done")
      () => {
        // The script must not be killed between a stop and the continuation.
        stopper.toHandle.destroy()
        stopper.waitFor(): Unit
      }
    }
  }

  /** A thread that makes garbage of all ages, so that the collector runs all the time. */
  case object Garbage extends Disturbance {
    private val Kept = 200
    private val PieceBytes = 256 * 1024

    override def start(): AutoCloseable = {
      @volatile var goesOn = true
      val thread = new Thread(() => {
        val kept = new Array[Array[Byte]](Kept)
        val random = new Random(1)
        while (goesOn) kept(random.nextInt(Kept)) = new Array[Byte](PieceBytes)
      })
      thread.setDaemon(true)
      thread.start()
      () => {
        goesOn = false
        thread.join()
      }
    }
  }

  val All: Seq[Disturbance] = Seq(Nothing, Burners, Stops, Garbage)

  private def shell(command: String): Process = new ProcessBuilder("sh", "-c", command)
    .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start()
}
