package io.penstock.state.format

import java.util.zip.CRC32C

/**
 * A section whose checksum is computed while it is read.
 *
 * @param next
 *   Returns bytes of the section, given their position and number
 * @param crc
 *   Checksum of the bytes that precede the section, to which the section is added
 */
final private[format] class CheckedBytes(
    length: Int,
    next: (Int, Int) => Array[Byte],
    crc: CRC32C = new CRC32C
) extends SectionBytes {
  private var position = 0

  override def consumed: Int = position

  override def remaining: Int = length - position

  override def take(count: Int): Array[Byte] = {
    expect(count.toLong)
    val bytes = next(position, count)
    crc.update(bytes)
    position += count
    bytes
  }

  /** Checksum of the whole section. Reads the rest of it if necessary. */
  def checksum(): Int = {
    while (remaining > 0) take(math.min(remaining, CheckedBytes.SkippedBytes)): Unit
    crc.getValue.toInt
  }
}

private object CheckedBytes {
  private val SkippedBytes = 1 << 16
}
