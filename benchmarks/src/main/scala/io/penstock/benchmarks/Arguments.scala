package io.penstock.benchmarks

/**
 * The options of a benchmark, `--name value`.
 *
 * @throws IllegalArgumentException
 *   where an option has no value
 */
final class Arguments(args: Seq[String]) {
  private val values: Map[String, String] = args
    .grouped(2)
    .map {
      case Seq(name, value) if name.startsWith("--") => name.drop(2) -> value
      case other => throw new IllegalArgumentException(s"expected --name value, found: ${other.mkString(" ")}")
    }
    .toMap

  def text(name: String, default: String): String = values.getOrElse(name, default)
  def int(name: String, default: Int): Int = values.get(name).map(_.toInt).getOrElse(default)
  def get(name: String): Option[String] = values.get(name)

  /**
   * @throws IllegalArgumentException
   *   where the option is missing
   */
  def required(name: String): String =
    values.getOrElse(name, throw new IllegalArgumentException(s"--$name is missing"))

  /** Whether a side takes part: `--sides` is a regular expression, by default everything. */
  def wants(side: Side): Boolean = text("sides", ".*").r.matches(side.name)
}
