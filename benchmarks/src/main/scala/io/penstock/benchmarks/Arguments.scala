package io.penstock.benchmarks

/**
 * The options of a benchmark, each as `--name=value`.
 *
 * @throws IllegalArgumentException
 *   if an argument has another form
 */
final class Arguments(args: Seq[String]) {
  private val values: Map[String, String] = args.map { arg =>
    arg.split("=", 2) match {
      case Array(name, value) if name.startsWith("--") => name.drop(2) -> value
      case _ => throw new IllegalArgumentException(s"argument $arg is not valid; expected --name=value")
    }
  }.toMap

  def text(name: String, default: String): String = values.getOrElse(name, default)
  def int(name: String, default: Int): Int = values.get(name).map(_.toInt).getOrElse(default)

  /**
   * @throws IllegalArgumentException
   *   if the option is missing
   */
  def required(name: String): String =
    values.getOrElse(name, throw new IllegalArgumentException(s"--$name is missing"))

  /** Whether a side takes part. `--sides` is a regular expression, which matches all sides by default. */
  def wants(side: Side): Boolean = text("sides", ".*").r.matches(side.name)
}
