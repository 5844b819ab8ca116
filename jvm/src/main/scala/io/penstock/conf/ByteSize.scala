package io.penstock.conf

/** Reads and writes sizes in the notation of Spark's settings: `512m`, `4g`, or a number of bytes without a unit. */
object ByteSize {
  private val Units = "kmgtp"

  /** Allowed units, for messages. */
  val UnitsInWords: String = "b, k, m, g, t, p; bytes without a unit"
  private val Notation = s"([0-9]+)([$Units]?)b?".r

  /** Number of bytes; None if the text is not a size or does not fit into a long. */
  def read(text: String): Option[Long] = text.toLowerCase match {
    case Notation(digits, unit) =>
      val factor = 1L << (10 * (if (unit.isEmpty) 0 else Units.indexOf(unit) + 1))
      digits.toLongOption.filter(_ <= Long.MaxValue / factor).map(_ * factor)
    case _ => None
  }

  /** The shortest text that stands for exactly this number of bytes. */
  def write(bytes: Long): String = {
    val power = if (bytes == 0L) 0 else math.min(java.lang.Long.numberOfTrailingZeros(bytes) / 10, Units.length)
    s"${bytes >> (10 * power)}${if (power == 0) "" else Units(power - 1)}"
  }
}
