package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.engine.{FamilyState, RecordTable, ShardState}
import io.penstock.state.format.{ChangeSet, FamilyTraits}

/**
 * Keys that move into and out of a shard between the version that a batch starts from and the batch, because hashes
 * were pinned or unpinned. Decision 046.
 *
 * @param gained
 *   hashes whose keys move into the shard, each with the shard that has the keys
 * @param lost
 *   hashes whose keys move to another shard
 */
final case class ShardMoves(gained: Seq[ShardMoves.Gain], lost: Set[Int]) {
  def isEmpty: Boolean = gained.isEmpty && lost.isEmpty

  /**
   * Writes the moves of families that the attempt has no view of. That is possible if a whole shard moves, because its
   * records need not be told apart by their keys.
   *
   * @param own
   *   content of this shard
   * @param known
   *   whether the attempt opened or removed a family
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNMOVABLE_FAMILY if only some of the records of such a family would have to move
   */
  def writeUnknown(out: ChangeSet.Writer, own: ShardState, known: String => Boolean, describe: => String): Unit = {
    def unknown(state: ShardState) =
      state.familyNames.filter(name => !known(name) && state.familyOrNull(name).table.size > 0)
    gained.filter(_.isWhole).map(_.from).foreach { from =>
      unknown(from).foreach { name =>
        val family = from.familyOrNull(name)
        out.family(name, family.traits, moved = true)
        ShardMoves.putAll(family.table, out)
      }
    }
    val divided = (if (lost.isEmpty) Nil else Seq(own)) ++ gained.filterNot(_.isWhole).map(_.from)
    divided.foreach { state =>
      unknown(state).headOption.foreach { name =>
        throw new PenstockException(
          "PENSTOCK_UNMOVABLE_FAMILY",
          s"keys of column family $name must move to another shard, but the query did not open the family " +
            s"($describe). Nothing was written. Start the query that wrote the checkpoint, or start this one with " +
            "spark.penstock.pinned.max=0, so that no key has to move"
        )
      }
    }
  }
}

object ShardMoves {
  val None: ShardMoves = ShardMoves(Nil, Set.empty)

  /**
   * The keys that move into and out of a shard.
   *
   * @param source
   *   returns the content of a shard after the previous batch
   */
  def of(shard: Int, layout: Layout, before: Layout)(source: Int => ShardState): ShardMoves = {
    val moves = layout.moves(before)
    ShardMoves(
      moves.filter(_.to == shard).map(m => Gain(m.hash, source(m.from), isWhole = m.from >= layout.baseShards)),
      if (layout.continues(shard, before)) moves.filter(_.from == shard).map(_.hash).toSet else Set.empty
    )
  }

  /**
   * A hash whose keys move into a shard.
   *
   * @param from
   *   shard that has the keys of the hash
   * @param isWhole
   *   whether that shard has no other keys
   */
  final case class Gain(hash: Int, from: ShardState, isWhole: Boolean)

  private[state] def putAll(t: RecordTable, out: ChangeSet.Writer): Unit = t.refs.foreach { r =>
    out.put(t.page(r), t.keyAt(r), t.keyLength(r), t.page(r), t.valueAt(r), t.valueLength(r))
  }
}

/**
 * One column family of a shard that keys move into or out of: the moves, and a copy of the content with the moves
 * applied, which belongs to the attempt. The copy is made on first use, because hashes of keys may depend on other
 * families, which are known only then.
 *
 * @param own
 *   the family in the shard; null if the shard does not have it
 * @param moves
 *   moves into and out of the shard; not empty
 * @param hashOf
 *   returns the hash of a key
 * @param grew
 *   is called with the heap bytes that were taken
 */
final class MovedFamily(
    name: String,
    traits: FamilyTraits,
    own: FamilyState,
    moves: ShardMoves,
    codec: FamilyCodec,
    hashOf: UnsafeRow => Int,
    grew: Long => Unit
) {
  private val gained = new FamilyState(traits)
  private val lost = new FamilyState(traits)

  /** The family with the moves applied; null if the shard did not have the family and gains no keys of it. */
  lazy val state: FamilyState = {
    val kept = new FamilyState(traits)
    if (own != null) split(own.table)(h => if (moves.lost(h)) Seq(lost) else Seq(kept))
    moves.gained.groupBy(_.from).foreach { case (from, gains) =>
      val source = from.familyOrNull(name)
      val hashes = gains.map(_.hash).toSet
      if (source != null) split(source.table)(h => if (hashes(h)) Seq(gained, kept) else Nil)
    }
    grew(Seq(gained, lost, kept).map(_.table.memoryBytes).sum)
    if (own == null && kept.table.size == 0) null else kept
  }

  /** Writes the moves. */
  def writeTo(out: ChangeSet.Writer): Unit = {
    state
    val leaving = lost.table
    if (gained.table.size + leaving.size > 0) out.family(name, traits, moved = true)
    ShardMoves.putAll(gained.table, out)
    leaving.refs.foreach(r => out.remove(leaving.page(r), leaving.keyAt(r), leaving.keyLength(r)))
  }

  private def split(from: RecordTable)(to: Int => Seq[FamilyState]): Unit = from.refs.foreach { r =>
    val (page, keyAt, keyLength) = (from.page(r), from.keyAt(r), from.keyLength(r))
    to(hashOf(codec.keyRow(page, keyAt, keyLength)))
      .foreach(_.put(page, keyAt, keyLength, page, from.valueAt(r), from.valueLength(r)))
  }
}
