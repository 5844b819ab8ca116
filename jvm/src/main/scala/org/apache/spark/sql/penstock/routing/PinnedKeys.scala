package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import org.apache.spark.sql.penstock.telemetry.KeyText

/**
 * Texts of a region's pinned keys for reports, and whether a row or state of each was ever seen. A layout knows pinned
 * keys only by their hash. Texts are known for keys that the application pinned and for keys that were heavy.
 */
final private[routing] class PinnedKeys {
  private val texts = mutable.LinkedHashMap.empty[Int, String]
  private val seen = mutable.Set.empty[Int]

  /** Hashes of keys that the application pinned and that were not yet part of a batch. */
  private val unverified = mutable.Set.empty[Int]

  /** Records a key that the application pinned. */
  def named(key: GivenKey): Unit = {
    keep(key.hash, key.text)
    unverified += key.hash
  }

  /** Records heavy keys of a batch. */
  def heavy(keys: Iterable[GivenKey]): Unit = keys.foreach(key => keep(key.hash, key.text))

  private def keep(hash: Int, text: String): Unit = {
    texts.remove(hash)
    texts(hash) = text
  }

  /**
   * Records that a batch has run.
   *
   * @param pinned
   *   Hashes that are pinned in this batch
   * @param present
   *   Whether the batch had a row of a hash, or the state has an entry for it
   * @return
   *   Texts of keys that the application pinned and that have neither rows nor state. Each key is returned only once
   */
  def ran(pinned: Set[Int], present: Int => Boolean): Seq[String] = {
    seen.filterInPlace(pinned)
    seen ++= pinned.filter(present)
    val absent = unverified.filter(hash => pinned(hash) && !seen(hash)).toSeq.sorted
    unverified --= pinned
    // The oldest texts are removed first.
    val surplus = texts.size - PinnedKeys.MaxTexts
    if (surplus > 0) texts.keysIterator.filterNot(pinned).take(surplus).toSeq.foreach(texts.remove)
    absent.map(text(_, shown = true))
  }

  /** Text for a hash: that of its key if it is known and may be shown, else the hash. */
  def text(hash: Int, shown: Boolean): String = texts.get(hash).filter(_ => shown).getOrElse(KeyText.ofHash(hash))

  def wasSeen(hash: Int): Boolean = seen(hash)
}

private object PinnedKeys {

  /** Maximum number of texts. A plan made some batches ago may still pin a key that is not heavy any more. */
  private val MaxTexts = 4096
}
