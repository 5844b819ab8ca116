package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.engine.{FamilyState, RecordTable, ShardState}
import io.penstock.state.format.{ChangeSet, FamilyTraits}

/**
 * What moves into a shard and out of it between the version that a batch starts from and the batch, because hashes were
 * pinned or are so no more. Decision 046.
 *
 * @param gained
 *   hashes, with the shard that has their keys
 * @param lost
 *   hashes whose keys leave for a shard that gains them
 */
final case class ShardMoves(gained: Seq[ShardMoves.Gain], lost: Set[Int]) {
  def isEmpty: Boolean = gained.isEmpty && lost.isEmpty

  /**
   * Moves what the attempt has no view of: where a whole shard comes, its records need not be told apart.
   *
   * @param own
   *   the shard
   * @param known
   *   whether the attempt opened a family, or removed it
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNMOVABLE_FAMILY where only some of the records of such a family would have to move
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
    val parted = (if (lost.isEmpty) Nil else Seq(own)) ++ gained.filterNot(_.isWhole).map(_.from)
    parted.foreach { state =>
      unknown(state).headOption.foreach { name =>
        throw new PenstockException(
          "PENSTOCK_UNMOVABLE_FAMILY",
          s"keys of column family $name are to move to another shard, but the query did not open the family ($describe); " +
            "nothing was written. Go back to the query that wrote the checkpoint, or start this one with " +
            "spark.penstock.pinned.max=0, so that no key has to move"
        )
      }
    }
  }
}

object ShardMoves {
  val None: ShardMoves = ShardMoves(Nil, Set.empty)

  /**
   * What moves into a shard and out of it.
   *
   * @param source
   *   a shard as the batch before left it
   */
  def of(shard: Int, layout: Layout, before: Layout)(source: Int => ShardState): ShardMoves = {
    val moves = layout.moves(before)
    ShardMoves(
      moves.filter(_.to == shard).map(m => Gain(m.hash, source(m.from), isWhole = m.from >= layout.baseShards)),
      if (layout.continues(shard, before)) moves.filter(_.from == shard).map(_.hash).toSet else Set.empty
    )
  }

  /**
   * @param from
   *   the shard that has the keys of the hash
   * @param isWhole
   *   whether it has no others
   */
  final case class Gain(hash: Int, from: ShardState, isWhole: Boolean)

  private[state] def putAll(t: RecordTable, out: ChangeSet.Writer): Unit = t.refs.foreach { r =>
    out.put(t.page(r), t.keyAt(r), t.keyLength(r), t.page(r), t.valueAt(r), t.valueLength(r))
  }
}

/**
 * One column family of a shard that keys move into or out of: its content with the moves done, which is the attempt's own,
 * and what they were. Made when it is first asked for: then the families around it are known, which its keys may depend on.
 *
 * @param own
 *   the family in the shard; null where it has none
 * @param moves
 *   not empty
 * @param hashOf
 *   of a key
 * @param grew
 *   is told of heap bytes that were taken
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

  /** With the moves done; null where the shard has nothing of the family. */
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
    val away = lost.table
    if (gained.table.size + away.size > 0) out.family(name, traits, moved = true)
    ShardMoves.putAll(gained.table, out)
    away.refs.foreach(r => out.remove(away.page(r), away.keyAt(r), away.keyLength(r)))
  }

  private def split(from: RecordTable)(to: Int => Seq[FamilyState]): Unit = from.refs.foreach { r =>
    val (page, keyAt, keyLength) = (from.page(r), from.keyAt(r), from.keyLength(r))
    to(hashOf(codec.keyRow(page, keyAt, keyLength)))
      .foreach(_.put(page, keyAt, keyLength, page, from.valueAt(r), from.valueLength(r)))
  }
}
