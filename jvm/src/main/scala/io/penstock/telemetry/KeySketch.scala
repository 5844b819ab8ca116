package io.penstock.telemetry

import scala.collection.mutable

import org.apache.datasketches.frequencies.{ErrorType, LongsSketch}

/**
 * A key that had much of a task's time or rows.
 *
 * @param text
 *   the key, for people
 * @param busyNs
 *   time of its rows, as far as rows were timed; it may be less by `busyErrorNs`, which is its longest reading at least:
 *   something else may have come between
 * @param rows
 *   how many they were, estimated from those that were timed; there may be less by `rowsError`
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
 * The keys that have most of a task's time, and of its rows, in bounded memory: two frequent-items sketches
 * (Misra and Gries' counters, as in Apache DataSketches), which never miss a key above their error. Keys are told apart
 * by their 32-bit hash. For one thread.
 */
final class KeySketch {
  private val time = new LongsSketch(KeySketch.MapSize)
  private val rows = new LongsSketch(KeySketch.MapSize)
  private val texts = mutable.LongMap.empty[String]
  private val longest = mutable.LongMap.empty[Long]
  private var widest = 1L

  /**
   * Adds a reading of a key.
   *
   * @param count
   *   rows of it
   * @param weight
   *   how many times as many readings it stands for
   * @param text
   *   called where the key may become one of those that are told
   */
  def add(hash: Int, busyNs: Long, count: Long, weight: Long)(text: => String): Unit = {
    time.update(hash.toLong, busyNs)
    rows.update(hash.toLong, count)
    widest = math.max(widest, weight)
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

  /** A sketch that nothing was added to has no heavy keys: where no rows are counted, every key would be one. */
  private def isHeavy(of: LongsSketch, hash: Long): Boolean =
    of.getStreamLength > 0L && of.getEstimate(hash) * KeySketch.Share >= of.getStreamLength

  /** Every key that had a 64th of the time or of the rows, and perhaps some that had less, heaviest first. */
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
    math.min(rows.getEstimate(hash), rows.getMaximumError + sampling(rows.getEstimate(hash)))
  )

  /** Two standard errors of a number of rows of which one of some was counted. */
  private def sampling(found: Long): Long = if (widest == 1L) 0L else (2 * math.sqrt(found.toDouble * widest)).toLong
}

object KeySketch {

  /** A key is told where it has one of so many parts. */
  private val Share = 64L

  /** Of each sketch: keys beyond a 96th of the whole are never missed. */
  private val MapSize = 512

  /** More are looked through for those that have become light: at most 128 are heavy. */
  private val MaxTexts = 256
}
