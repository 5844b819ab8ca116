package io.penstock.telemetry

import scala.collection.mutable

import org.apache.datasketches.frequencies.{ErrorType, LongsSketch}

/**
 * A key with a large share of a task's time or rows.
 *
 * @param text
 *   The key in readable form
 * @param busyNs
 *   Time of the key's timed rows and those they stand for. The true time may be lower by `busyErrorNs`, which is at
 *   least the longest reading of the key, because a reading may include an interruption
 * @param rows
 *   Number of the key's rows, estimated from the timed ones. The true number may be lower by `rowsError`
 */
final case class KeyLoad(
    hash: Int,
    shard: Int,
    text: String,
    busyNs: Long,
    busyErrorNs: Long,
    rows: Long,
    rowsError: Long
)

/**
 * Finds the keys with the largest shares of a task's time and of its rows, in bounded memory. It uses two
 * frequent-items sketches (Misra and Gries' counters, as in Apache DataSketches), which never miss a key above their
 * error. Keys are identified by their 32-bit hash. Not thread safe.
 */
final class KeySketch {
  private val time = new LongsSketch(KeySketch.MapSize)
  private val rows = new LongsSketch(KeySketch.MapSize)
  private val texts = mutable.LongMap.empty[String]
  private val longest = mutable.LongMap.empty[Long]
  private var maxWeight = 1L

  /**
   * Adds a reading of a key.
   *
   * @param count
   *   Number of rows of the key to add, which is 0 if rows are counted elsewhere
   * @param weight
   *   Number of readings that the reading stands for
   * @param text
   *   The key in readable form. Evaluated only if the key may be reported as heavy
   */
  def add(hash: Int, busyNs: Long, count: Long, weight: Long)(text: => String): Unit = {
    time.update(hash.toLong, busyNs)
    rows.update(hash.toLong, count)
    maxWeight = math.max(maxWeight, weight)
    if (isHeavy(hash.toLong)) {
      if (!texts.contains(hash.toLong)) {
        if (texts.size >= KeySketch.MaxTexts) texts.keysIterator.filterNot(isHeavy).toSeq.foreach { light =>
          texts.remove(light)
          longest.remove(light)
        }
        texts(hash.toLong) = text
      }
      longest(hash.toLong) = math.max(busyNs, longest.getOrElse(hash.toLong, 0L))
    }
  }

  private def isHeavy(hash: Long): Boolean = isHeavy(time, hash) || isHeavy(rows, hash)

  /** An empty sketch has no heavy keys. Without this rule every key would be heavy if no rows are counted. */
  private def isHeavy(sketch: LongsSketch, hash: Long): Boolean =
    sketch.getStreamLength > 0L && sketch.getEstimate(hash) * KeySketch.Share >= sketch.getStreamLength

  /** Every key with at least 1/64 of the time or of the rows, and possibly some with less, heaviest first. */
  def heavy(shardOf: Int => Int): Seq[KeyLoad] = {
    val found = Seq(time, rows).flatMap { sketch =>
      sketch.getFrequentItems(sketch.getStreamLength / KeySketch.Share, ErrorType.NO_FALSE_NEGATIVES).map(_.getItem)
    }
    found.distinct.flatMap(hash => texts.get(hash).map(load(hash, _, shardOf))).sortBy(k => (-k.busyNs, k.hash))
  }

  private def load(hash: Long, text: String, shardOf: Int => Int): KeyLoad = KeyLoad(
    hash.toInt,
    shardOf(hash.toInt),
    text,
    time.getEstimate(hash),
    math.min(time.getEstimate(hash), time.getMaximumError + longest.getOrElse(hash, 0L)),
    rows.getEstimate(hash),
    math.min(rows.getEstimate(hash), rows.getMaximumError + samplingError(rows.getEstimate(hash)))
  )

  /** Two standard errors of a number of rows that was estimated from a sample. */
  private def samplingError(count: Long): Long =
    if (maxWeight == 1L) 0L else (2 * math.sqrt(count.toDouble * maxWeight)).toLong
}

object KeySketch {

  /** A key is heavy if it has at least one part in `Share` of the time or of the rows. */
  private val Share = 64L

  /** Map size of each sketch. Keys with more than 1/96 of the total are never missed. */
  private val MapSize = 512

  /** With this many texts, those of keys that are no longer heavy are removed. At most 128 keys are heavy. */
  private val MaxTexts = 256
}
