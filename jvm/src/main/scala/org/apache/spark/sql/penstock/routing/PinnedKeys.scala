package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import org.apache.spark.sql.penstock.telemetry.KeyText

/**
 * What people are told of the pinned keys of a region: how they are written, and whether a row or state of them was ever
 * seen. What is pinned is known by its hash only; keys that an application names have a text, and so have those that were
 * heavy.
 */
final private[routing] class PinnedKeys {
  private val texts = mutable.LinkedHashMap.empty[Int, String]
  private val seen = mutable.Set.empty[Int]
  private val asked = mutable.Set.empty[Int]

  /** An application has named a key. */
  def named(key: GivenKey): Unit = {
    keep(key.hash, key.text)
    asked += key.hash
  }

  /** Keys had much of a batch. */
  def heavy(keys: Iterable[GivenKey]): Unit = keys.foreach(key => keep(key.hash, key.text))

  private def keep(hash: Int, text: String): Unit = {
    texts.remove(hash)
    texts(hash) = text
  }

  /**
   * A batch has run.
   *
   * @param pinned
   *   in this batch
   * @param present
   *   whether the batch had a row of a hash, or the state an entry
   * @return
   *   texts of the keys that were named by the application and that nothing is there of, each once
   */
  def ran(pinned: Set[Int], present: Int => Boolean): Seq[String] = {
    seen.filterInPlace(pinned)
    seen ++= pinned.filter(present)
    val absent = asked.filter(hash => pinned(hash) && !seen(hash)).toSeq.sorted
    asked --= pinned
    // The oldest leave first.
    val surplus = texts.size - PinnedKeys.MaxTexts
    if (surplus > 0) texts.keysIterator.filterNot(pinned).take(surplus).toSeq.foreach(texts.remove)
    absent.map(text(_, shown = true))
  }

  /** How a hash is told. */
  def text(hash: Int, shown: Boolean): String = texts.get(hash).filter(_ => shown).getOrElse(KeyText.ofHash(hash))

  def wasSeen(hash: Int): Boolean = seen(hash)
}

private object PinnedKeys {

  /** Of keys that may be pinned by a plan of some batches ago. */
  private val MaxTexts = 4096
}
