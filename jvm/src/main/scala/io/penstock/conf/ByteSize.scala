package io.penstock.conf

/** Sizes as Spark's own settings write them: `512m`, `4g`, or bytes without a unit. */
object ByteSize {
  private val Units = "kmgtp"

  /** For messages. */
  val UnitsInWords: String = "b, k, m, g, t, p; bytes without one"
  private val Written = s"([0-9]+)([$Units]?)b?".r

  /** Bytes; None where the text is no size, or one that a long cannot hold. */
  def read(text: String): Option[Long] = text.toLowerCase match {
    case Written(digits, unit) =>
      val factor = 1L << (10 * (if (unit.isEmpty) 0 else Units.indexOf(unit) + 1))
      digits.toLongOption.filter(_ <= Long.MaxValue / factor).map(_ * factor)
    case _ => None
  }

  /** The shortest text that is exact. */
  def write(bytes: Long): String = {
    val power = if (bytes == 0L) 0 else math.min(java.lang.Long.numberOfTrailingZeros(bytes) / 10, Units.length)
    s"${bytes >> (10 * power)}${if (power == 0) "" else Units(power - 1)}"
  }
}
