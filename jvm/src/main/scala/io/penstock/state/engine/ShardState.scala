package io.penstock.state.engine

import scala.collection.mutable

import io.penstock.state.format.{ChangeSet, ChangeSink, FamilyTraits}

/** The content of one shard of one store: its column families by name. */
final class ShardState extends ChangeSink {
  private val families = mutable.LinkedHashMap[String, FamilyState]()

  /** The family, or null if it has never been written. */
  def familyOrNull(name: String): FamilyState = families.getOrElse(name, null)

  def familyNames: Iterable[String] = families.keys

  override def family(name: String, traits: FamilyTraits, moved: Boolean = false): FamilyState = {
    val f = families.getOrElseUpdate(name, new FamilyState(traits))
    if (f.traits == traits) f else null
  }

  /** Adds a family. Returns false if there was one of that name, which is replaced. */
  private[engine] def add(name: String, family: FamilyState): Boolean = families.put(name, family).isEmpty

  override def removeFamily(name: String): Unit = families.remove(name)

  /** An independent copy. */
  def copied: ShardState = {
    val copy = new ShardState
    copy.addAll(this)
    copy
  }

  /** Adds the content of another shard. The shards must have no key in common. */
  def addAll(other: ShardState): Unit = other.families.foreach { case (name, from) =>
    val to = family(name, from.traits)
    val t = from.table
    t.refs.foreach(r =>
      to.put(t.page(r), t.keyAt(r), t.keyLength(r), t.page(r), t.valueAt(r), t.valueLength(r))
    )
  }

  /** Applies the changes of one version. */
  def apply(changes: Array[Byte], offset: Int, length: Int): Unit = ChangeSet.read(changes, offset, length, this)

  /** Image of the current content. */
  def image: ShardImage = ShardImage.of(families)

  def memoryBytes: Long = families.valuesIterator.map(_.table.memoryBytes).sum
}
