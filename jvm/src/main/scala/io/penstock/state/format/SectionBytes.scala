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

  /** Checks that nothing is left. */
  final def expectEnd(last: String): Unit =
    if (remaining != 0) throw new MalformedData(s"$remaining bytes behind the last $last", consumed)
}
