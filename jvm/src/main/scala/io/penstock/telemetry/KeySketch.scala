package io.penstock.telemetry

import scala.collection.mutable

import org.apache.datasketches.frequencies.{ErrorType, LongsSketch}

/**
 * A key that had much of a task's time or rows.
 *
 * @param text
 *   the key, for people
 * @param busyNs
 *   time of its rows, as far as rows were timed; it may be less by `busyErrorNs`
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

  /**
   * Adds rows of a key.
   *
   * @param text
   *   called where the key may become one of those that are told
   */
  def add(hash: Int, busyNs: Long, count: Long)(text: => String): Unit = {
    time.update(hash.toLong, busyNs)
    rows.update(hash.toLong, count)
    if (isHeavy(hash.toLong) && !texts.contains(hash.toLong)) {
      if (texts.size >= KeySketch.MostTexts) texts.keysIterator.filterNot(isHeavy).toSeq.foreach(texts.remove)
      texts(hash.toLong) = text
    }
  }

  private def isHeavy(hash: Long): Boolean =
    time.getEstimate(hash) * KeySketch.Share >= time.getStreamLength ||
      rows.getEstimate(hash) * KeySketch.Share >= rows.getStreamLength

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
    time.getMaximumError,
    rows.getEstimate(hash),
    rows.getMaximumError
  )
}

object KeySketch {

  /** A key is told where it has one of so many parts. */
  private val Share = 64L

  /** Of each sketch: keys beyond a 96th of the whole are never missed. */
  private val MapSize = 512

  /** More are looked through for those that have become light: at most 128 are heavy. */
  private val MostTexts = 256
}
