package io.penstock.state.format

/** The bytes of a section, one after the other. */
trait SectionBytes {

  /** Bytes taken so far. */
  def consumed: Int

  def remaining: Int

  /**
   * The next bytes, in an array of their own.
   *
   * @throws MalformedData
   *   where so many are not left
   */
  def take(count: Int): Array[Byte]

  /** All that is left. */
  final def takeAll(): Array[Byte] = take(remaining)

  /** Checks that so many are left, before memory is taken for them. */
  final def expect(bytes: Long): Unit =
    if (bytes < 0 || bytes > remaining) throw new MalformedData(s"$bytes bytes wanted, $remaining left", consumed)

  /** Checks that nothing is left. */
  final def expectEnd(last: String): Unit =
    if (remaining != 0) throw new MalformedData(s"$remaining bytes behind the last $last", consumed)
}
