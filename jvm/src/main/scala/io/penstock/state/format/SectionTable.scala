package io.penstock.state.format

/**
 * One section of a changelog or snapshot file.
 *
 * @param offset
 *   Offset from the start of the payload
 * @param crc
 *   CRC32C of the section
 */
final case class Section(store: StoreKey, shard: Int, offset: Int, length: Int, crc: Int) extends Serializable

/**
 * Body of changelog and snapshot files: a table of the sections in the payload. Specified in docs/PROTOCOL.md, section
 * 5. Queries find sections through manifests; only `penstock inspect` reads this table.
 */
object SectionTable {

  def encode(sections: Seq[Section]): Array[Byte] = {
    val out = new ByteSink(16 * sections.size + 16)
    out.putVarint(sections.size)
    sections.foreach { s =>
      StoreKey.put(out, s.store)
      out.putVarint(s.shard)
      out.putVarint(s.offset)
      out.putVarint(s.length)
      out.putInt(s.crc)
    }
    out.toByteArray
  }
}
