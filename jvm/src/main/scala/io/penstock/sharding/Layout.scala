package io.penstock.sharding

import java.util.{Arrays => JArrays}

/**
 * Maps hashes of keys to shards. A hash belongs to the base shard `hash mod S`, or, if it is pinned, to the shard of
 * its pin slot, which contains no other hash. Keys with the same pinned hash share its shard (decision 046).
 *
 * @param baseShards
 *   number of base shards, S
 * @param pinSlots
 *   hash of shard `baseShards + i`; None for a free pin slot, whose shard is empty. The last pin slot must be taken, so
 *   that equal layouts have the same representation
 */
final case class Layout(baseShards: Int, pinSlots: Vector[Option[Int]] = Vector.empty) {
  require(baseShards > 0, s"a layout must have at least one base shard, found $baseShards")
  require(pinSlots.isEmpty || pinSlots.last.nonEmpty, "the last pin slot of a layout is free")

  /** Pinned hashes in signed order, and the shard of each hash. */
  @transient private lazy val (sorted, shardOfSorted) = {
    val taken = pinSlots.zipWithIndex.collect { case (Some(hash), i) => hash -> (baseShards + i) }.sortBy(_._1)
    require(taken.map(_._1).distinct.size == taken.size, "a hash is pinned twice")
    (taken.map(_._1).toArray, taken.map(_._2).toArray)
  }

  /** Number of shards, including those of free pin slots. */
  def shards: Int = baseShards + pinSlots.size

  def shardOf(hash: Int): Int =
    if (pinSlots.isEmpty) baseShardOf(hash)
    else {
      val i = JArrays.binarySearch(sorted, hash)
      if (i >= 0) shardOfSorted(i) else baseShardOf(hash)
    }

  /** The shard of a hash that is not pinned, which is also Spark's state partition of the hash. */
  def baseShardOf(hash: Int): Int = Math.floorMod(hash, baseShards)

  /** The pinned hash of a shard; None for a base shard and for a free pin slot. */
  def hashOf(shard: Int): Option[Int] = pinSlots.lift(shard - baseShards).flatten

  def pinned: Set[Int] = pinSlots.flatten.toSet

  /** The shards with the keys of one of Spark's state partitions, the base shard first. */
  def ofPartition(partition: Int): Seq[Int] =
    partition +: (baseShards until shards).filter(hashOf(_).exists(baseShardOf(_) == partition))

  /** Whether a shard continues the shard with the same number in the previous layout; otherwise it starts empty. */
  def continues(shard: Int, before: Layout): Boolean =
    shard < baseShards || hashOf(shard).exists(before.hashOf(shard).contains)

  /** The hashes that are in another shard than in the previous layout. */
  def moves(before: Layout): Seq[Layout.Move] =
    if (pinSlots == before.pinSlots) Nil
    else
      (before.pinned ++ pinned).toSeq.sorted
        .map(hash => Layout.Move(hash, before.shardOf(hash), shardOf(hash)))
        .filter(m => m.from != m.to)

  /**
   * The layout in which exactly these hashes are pinned. Hashes that are already pinned keep their pin slots.
   *
   * @throws IllegalArgumentException
   *   for more than [[Layout.MaxPinSlots]] hashes
   */
  def pinning(hashes: Set[Int]): Layout = {
    require(hashes.size <= Layout.MaxPinSlots, s"cannot pin ${hashes.size} hashes, at most ${Layout.MaxPinSlots}")
    val kept = pinSlots.map(_.filter(hashes))
    val fresh = (hashes -- pinned).toSeq.sorted
    val (free, _) = kept.zipWithIndex.filter(_._1.isEmpty).map(_._2).splitAt(fresh.size)
    val filled = free.zip(fresh).foldLeft(kept) { case (at, (i, hash)) => at.updated(i, Some(hash)) }
    val all = filled ++ fresh.drop(free.size).map(Some(_))
    Layout(baseShards, all.take(all.lastIndexWhere(_.nonEmpty) + 1))
  }

  /**
   * For each shard, the shard of the previous layout that it continues or, if it starts empty, from which its keys
   * come.
   */
  def inherited(before: Layout): Array[Int] =
    Array.tabulate(shards)(s => if (continues(s, before)) s else before.shardOf(hashOf(s).getOrElse(0)))
}

object Layout {

  /** Largest number of pin slots of a layout. */
  val MaxPinSlots = 1024

  /** The move of a hash's keys from one shard to another. */
  final case class Move(hash: Int, from: Int, to: Int)
}
