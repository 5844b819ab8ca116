package io.penstock.conf

/**
 * The type of a setting's values: their notation and which of them are allowed.
 *
 * @param name
 *   name of the type, for documentation
 * @param allowed
 *   description of the allowed values, for error messages and documentation
 * @param read
 *   parses a text; returns None if the text is not allowed
 * @param write
 *   formats a value, so that `read(write(v)) == Some(v)`
 */
final case class Kind[T](name: String, allowed: String, read: String => Option[T], write: T => String)

object Kind {

  /** An integer from `min` to `max`, inclusive. */
  def int(min: Int, max: Int): Kind[Int] =
    Kind("integer", s"an integer from $min to $max", s => s.toIntOption.filter(v => v >= min && v <= max), _.toString)

  /** An integer from `min` to `max`, inclusive. */
  def long(min: Long, max: Long): Kind[Long] =
    Kind("integer", s"an integer from $min to $max", s => s.toLongOption.filter(v => v >= min && v <= max), _.toString)

  /** A size of at most `max` bytes. */
  def bytes(max: Long): Kind[Long] = Kind(
    "size",
    s"a size such as 512k or 4m (${ByteSize.UnitsInWords}), at most ${ByteSize.write(max)}",
    ByteSize.read(_).filter(_ <= max),
    ByteSize.write
  )

  /** A number greater than `above` and at most `max`. */
  def doubleAbove(above: Double, max: Double): Kind[Double] =
    Kind(
      "number",
      s"a number greater than ${show(above)} and at most ${show(max)}",
      s => s.toDoubleOption.filter(v => v > above && v <= max),
      show
    )

  /** A program: a path, or a name that is looked up on the PATH. */
  val program: Kind[String] =
    Kind("program", "a program's name or path, without arguments", s => Option(s.trim).filter(_.nonEmpty), s => s)

  /** `true` or `false`. */
  val boolean: Kind[Boolean] = Kind("boolean", "true or false", _.toLowerCase.toBooleanOption, _.toString)

  /**
   * A choice between several forms: plain words, words with a seed, and numbers, such as `hybrid`, `chaos(17)` and
   * `16`. Case is ignored.
   *
   * @param words
   *   plain words with their values
   * @param seeded
   *   words that take a seed, with the function from the seed to the value
   * @param number
   *   the kind of allowed numbers, with the function from a number to the value; None if numbers are not allowed
   */
  def choice[T](
      name: String,
      words: Seq[(String, T)],
      seeded: Seq[(String, Long => T)] = Nil,
      number: Option[(Kind[Int], Int => T)] = None
  )(
      write: T => String
  ): Kind[T] = {
    val forms = words.map(_._1) ++ seeded.map(s => s"${s._1}(<seed>)")
    val note = (if (seeded.isEmpty) "" else ", where <seed> is an integer") +
      number.fold("")(n => s", or ${n._1.allowed}")
    def read(text: String): Option[T] = {
      val t = text.toLowerCase
      words.collectFirst { case (w, v) if w.toLowerCase == t => v }.orElse(seeded.collectFirst {
        case (w, make) if t.startsWith(s"$w(") && t.endsWith(")") =>
          t.substring(w.length + 1, t.length - 1).trim.toLongOption.map(make)
      }.flatten).orElse(number.flatMap { case (kind, make) => kind.read(t).map(make) })
    }
    Kind(name, s"one of ${forms.mkString(", ")}$note", read, write)
  }

  private def show(d: Double): String = if (d == math.rint(d) && d.abs < 1e9) d.toLong.toString else d.toString
}
