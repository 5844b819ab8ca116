package io.penstock.state.format

/** The bytes of a section, read sequentially. */
trait SectionBytes {

  /** Bytes taken so far. */
  def consumed: Int

  def remaining: Int

  /**
   * The next `count` bytes, in a new array.
   *
   * @throws MalformedData
   *   If fewer bytes are left
   */
  def take(count: Int): Array[Byte]

  /** All remaining bytes. */
  final def takeAll(): Array[Byte] = take(remaining)

  /** Checks that at least `bytes` bytes are left, before memory is allocated for them. */
  final def expect(bytes: Long): Unit =
    if (bytes < 0 || bytes > remaining) {
      throw new MalformedData(s"$bytes bytes are needed, but only $remaining are left", consumed)
    }

  /** Checks that no bytes are left. */
  final def expectEnd(last: String): Unit =
    if (remaining != 0) throw new MalformedData(s"$remaining unexpected bytes after the last $last", consumed)
}
