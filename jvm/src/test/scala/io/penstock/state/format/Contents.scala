package io.penstock.state.format

import java.util.UUID

import org.apache.spark.unsafe.Platform

import io.penstock.state.engine.{FamilyState, KeyBytes, ShardImage, ShardState}

/** The content of a shard as values that can be compared. */
object Contents {

  /**
   * Non-empty families: their traits, and their keys with values. Keys of families that are not multi-valued have one
   * value.
   */
  type Content = Map[String, (FamilyTraits, Map[Seq[Byte], Seq[Seq[Byte]]])]

  def of(shard: ShardState): Content = shard.familyNames.map(n => n -> shard.familyOrNull(n)).toMap.collect {
    case (name, family) if family.table.size > 0 => name -> (family.traits -> keys(family))
  }

  private val rewrittenInto = Container.Snapshots(8L, new UUID(0L, 8L))

  /** Path that errors name for an image that was written again. */
  val rewrittenPath: String = rewrittenInto.path

  /** Writes the shard and reads the bytes back. */
  def rewritten(shard: ShardState): Content = {
    val out = new ByteSink
    shard.image.writeTo(out)
    of(ofImage(out.toByteArray))
  }

  /** Reads a shard from the bytes of its image. */
  def ofImage(bytes: Array[Byte]): ShardState = {
    val section = SectionRef(rewrittenInto, 0L, bytes.length, FileFormat.crc(bytes))
    new FileReader(rewrittenPath, new InMemory(bytes)).section(section)(ShardImage.read)
  }

  def bytes(base: AnyRef, at: Long, length: Int): Seq[Byte] = {
    val from = (at - Platform.BYTE_ARRAY_OFFSET).toInt
    val array = base.asInstanceOf[Array[Byte]]
    require(from >= 0 && length >= 0 && from + length <= array.length, "bytes outside of their array")
    java.util.Arrays.copyOfRange(array, from, from + length).toSeq
  }

  private def keys(family: FamilyState): Map[Seq[Byte], Seq[Seq[Byte]]] = {
    val t = family.table
    t.refs.map { ref =>
      val key = t.keyOf(ref, new KeyBytes)
      bytes(key.base, key.offset, key.length) -> values(family.traits, t.page(ref), t.valueAt(ref), t.valueLength(ref))
    }.toMap
  }

  /** The values of a key. Fails if a value exceeds its space. */
  def values(traits: FamilyTraits, page: AnyRef, at: Long, length: Int): Seq[Seq[Byte]] =
    if (!traits.multiValued) Seq(bytes(page, at, length))
    else {
      val walk = new FamilyState.Values(page, at, length)
      val out = Seq.newBuilder[Seq[Byte]]
      var left = length
      while (walk.hasNext) {
        val n = walk.next()
        left -= 4 + n
        require(n >= 0 && left >= 0, "a value outside of its room")
        out += bytes(page, walk.valueAt(n), n)
      }
      out.result()
    }
}
