package org.apache.spark.sql.penstock.integration.harness

import scala.util.Random

/**
 * The row that every query of the matrix reads.
 *
 * @param time
 *   Event time in seconds
 * @param batch
 *   Number of the row's input
 */
final case class Event(key: Long, value: Long, time: Long, batch: Long)

/** Generates seeded input: some keys are hot, event time increases with the input's number, and some rows are late. */
final class EventGenerator(seed: Long) {
  import EventGenerator._

  private val random = new Random(seed)

  def input(batch: Int, rows: Int): Seq[Event] = Seq.fill(rows) {
    val key = if (random.nextInt(3) == 0) random.nextInt(HotKeys) else random.nextInt(Keys)
    val delay = if (random.nextInt(20) == 0) LateBySeconds else 0
    val time = batch * SecondsPerInput + random.nextInt(SecondsPerInput + 4) - delay
    Event(key.toLong, random.nextInt(100).toLong, math.max(0, time).toLong, batch.toLong)
  }
}

object EventGenerator {
  val Keys = 40
  private val HotKeys = 3
  val SecondsPerInput = 5
  private val LateBySeconds = 12
}
