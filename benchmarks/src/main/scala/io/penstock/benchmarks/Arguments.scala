package io.penstock.benchmarks

/**
 * The options of a benchmark, `--name=value`.
 *
 * @throws IllegalArgumentException
 *   for an argument of another form
 */
final class Arguments(args: Seq[String]) {
  private val values: Map[String, String] = args.map { arg =>
    arg.split("=", 2) match {
      case Array(name, value) if name.startsWith("--") => name.drop(2) -> value
      case _ => throw new IllegalArgumentException(s"expected --name=value, found: $arg")
    }
  }.toMap

  def text(name: String, default: String): String = values.getOrElse(name, default)
  def int(name: String, default: Int): Int = values.get(name).map(_.toInt).getOrElse(default)

  /**
   * @throws IllegalArgumentException
   *   where the option is missing
   */
  def required(name: String): String =
    values.getOrElse(name, throw new IllegalArgumentException(s"--$name is missing"))

  /** Whether a side takes part: `--sides` is a regular expression, by default everything. */
  def wants(side: Side): Boolean = text("sides", ".*").r.matches(side.name)
}
