package io.penstock.sharding

import java.util.{Arrays => JArrays}

import io.penstock.state.format.{ByteSink, ByteSource, MalformedData}

/**
 * Which shard a key is in, by its hash: one of S base shards, by the hash modulo S; or, where its hash is pinned, the
 * shard of a pin slot behind them, which has no other hash. Keys that share a pinned hash share its shard. Decision 046.
 *
 * @param baseShards
 *   S
 * @param pinSlots
 *   the hash that shard `baseShards + i` is for; None for a pin slot that is free, whose shard is empty. The last one is taken, so
 *   that equal layouts look the same
 */
final case class Layout(baseShards: Int, pinSlots: Vector[Option[Int]] = Vector.empty) {
  require(baseShards > 0, s"a layout needs a shard, found $baseShards")
  require(pinSlots.isEmpty || pinSlots.last.nonEmpty, "the last pin slot of a layout is free")

  /** Pinned hashes in signed order, and the shard of each. */
  @transient private lazy val (sorted, shardOfSorted) = {
    val taken = pinSlots.zipWithIndex.collect { case (Some(hash), i) => hash -> (baseShards + i) }.sortBy(_._1)
    require(taken.map(_._1).distinct.size == taken.size, "a hash is pinned twice")
    (taken.map(_._1).toArray, taken.map(_._2).toArray)
  }

  /** How many shards there are, those of free pin slots included. */
  def shards: Int = baseShards + pinSlots.size

  def shardOf(hash: Int): Int =
    if (pinSlots.isEmpty) baseShardOf(hash)
    else {
      val i = JArrays.binarySearch(sorted, hash)
      if (i >= 0) shardOfSorted(i) else baseShardOf(hash)
    }

  /** The shard that the hash is in where it is not pinned: Spark's state partition. */
  def baseShardOf(hash: Int): Int = Math.floorMod(hash, baseShards)

  /** The only hash of a shard; None for a base shard and for a pin slot that is free. */
  def hashOf(shard: Int): Option[Int] = pinSlots.lift(shard - baseShards).flatten

  def pinned: Set[Int] = pinSlots.flatten.toSet

  /** The shards whose keys Spark has in a state partition, the base shard first. */
  def ofPartition(partition: Int): Seq[Int] =
    partition +: (baseShards until shards).filter(hashOf(_).exists(baseShardOf(_) == partition))

  /** Whether a shard goes on from the shard with its number in the layout before; else it begins empty. */
  def continues(shard: Int, before: Layout): Boolean =
    shard < baseShards || hashOf(shard).exists(before.hashOf(shard).contains)

  /** The hashes that are in another shard than in the layout before. */
  def moves(before: Layout): Seq[Layout.Move] =
    if (pinSlots == before.pinSlots) Nil
    else
      (before.pinned ++ pinned).toSeq.sorted
        .map(hash => Layout.Move(hash, before.shardOf(hash), shardOf(hash)))
        .filter(m => m.from != m.to)

  /**
   * The layout with these hashes pinned and no others. Those that are pinned already stay where they are.
   *
   * @throws IllegalArgumentException
   *   for more than [[Layout.MaxPinSlots]]
   */
  def pinning(hashes: Set[Int]): Layout = {
    require(hashes.size <= Layout.MaxPinSlots, s"${hashes.size} hashes are to be pinned, ${Layout.MaxPinSlots} can be")
    val kept = pinSlots.map(_.filter(hashes))
    val fresh = (hashes -- pinned).toSeq.sorted
    val (free, _) = kept.zipWithIndex.filter(_._1.isEmpty).map(_._2).splitAt(fresh.size)
    val filled = free.zip(fresh).foldLeft(kept) { case (at, (i, hash)) => at.updated(i, Some(hash)) }
    val all = filled ++ fresh.drop(free.size).map(Some(_))
    Layout(baseShards, all.take(all.lastIndexWhere(_.nonEmpty) + 1))
  }

  /** For each shard that of the layout before that it goes on from; where it begins empty, the one that its keys come from. */
  def inherited(before: Layout): Array[Int] =
    Array.tabulate(shards)(s => if (continues(s, before)) s else before.shardOf(hashOf(s).getOrElse(0)))
}

object Layout {

  /** Most pin slots that a layout can have. */
  val MaxPinSlots = 1024

  /** The keys of a hash leave one shard for another. */
  final case class Move(hash: Int, from: Int, to: Int)

  /** Writes the pin slots: docs/PROTOCOL.md, "Manifest". */
  def putPinSlots(out: ByteSink, pinSlots: Vector[Option[Int]]): Unit = {
    out.putVarint(pinSlots.size)
    pinSlots.foreach {
      case None => out.putByte(0)
      case Some(hash) => out.putByte(1); out.putInt(hash)
    }
  }

  /**
   * Reads pin slots.
   *
   * @throws io.penstock.state.format.MalformedData
   *   where they are not those of a layout
   */
  def getPinSlots(in: ByteSource): Vector[Option[Int]] = {
    val at = in.consumed
    val pinSlots = Vector.fill(in.getCount("number of pin slots", math.min(MaxPinSlots, in.remaining))) {
      val flagAt = in.consumed
      in.getByte() match {
        case 0 => None
        case 1 => Some(in.getInt())
        case f => throw new MalformedData(s"unknown flag $f of a pin slot", flagAt)
      }
    }
    if (pinSlots.lastOption.contains(None)) throw new MalformedData("the last pin slot is free", at)
    if (pinSlots.flatten.distinct.size != pinSlots.flatten.size) throw new MalformedData("a hash is pinned twice", at)
    pinSlots
  }
}
