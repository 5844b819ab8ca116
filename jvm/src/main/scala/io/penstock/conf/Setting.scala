package io.penstock.conf

import io.penstock.errors.PenstockException

/**
 * One setting. `Settings` holds them all.
 *
 * @param name
 *   what follows `spark.penstock.` in Spark's configuration, and `penstock.` in a query's options
 * @param scope
 *   the nearest place to a query where it may be set
 * @param unit
 *   of the value; "-" where it has none
 * @param since
 *   version of Penstock that introduced it
 * @param meaning
 *   one or two sentences of Markdown
 */
final case class Setting[T](
    name: String,
    kind: Kind[T],
    default: T,
    scope: Scope,
    effect: Effect,
    unit: String,
    since: String,
    meaning: String
) {

  /** Key in the application's and the session's configuration. */
  def key: String = Setting.ConfPrefix + name

  /** Key in a query's options. */
  def option: String = Setting.OptionPrefix + name

  /** Whether it is meant by a key, in any case: Spark does not keep that of options. */
  def isNamed(written: String): Boolean = key.equalsIgnoreCase(written) || option.equalsIgnoreCase(written)

  /**
   * The value that `text` stands for.
   *
   * @param writtenAs
   *   the key as the user wrote it, for the error
   * @param found
   *   where it was set
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SETTING_SCOPE where it may not be set there, PENSTOCK_INVALID_SETTING where the text is no allowed value
   */
  def parse(text: String, writtenAs: String, found: Scope): T = {
    if (!scope.admits(found)) {
      throw new PenstockException(
        "PENSTOCK_SETTING_SCOPE",
        s"$writtenAs=$text was found in ${found.location}, but it can only be set for the whole ${scope.name}, as " +
          s"${Setting.whereTo(scope, key, text)}. Remove it from ${found.location} and set it there."
      )
    }
    kind.read(text.trim).getOrElse(throw new PenstockException(
      "PENSTOCK_INVALID_SETTING",
      s"$writtenAs has the value '$text' (in ${found.location}). Allowed: ${kind.allowed}. Default: ${kind.write(default)}. " +
        s"Set an allowed value, or remove $writtenAs."
    ))
  }
}

object Setting {
  val ConfPrefix = "spark.penstock."
  val OptionPrefix = "penstock."

  /** Both are used in all places: who has learnt one need not know where the other belongs. */
  private val Prefixes = Seq(ConfPrefix, OptionPrefix)

  /** The prefix of a key that is meant for Penstock, in any case; None for others. */
  def prefixOf(written: String): Option[String] = Prefixes.find(p => written.regionMatches(true, 0, p, 0, p.length))

  private def whereTo(scope: Scope, key: String, text: String): String = scope match {
    case Scope.Application => s"--conf $key=$text when the application starts"
    case Scope.Session => s"""spark.conf.set("$key", "$text") before the query starts"""
    case Scope.Query => s"""writeStream.option("${OptionPrefix + key.stripPrefix(ConfPrefix)}", "$text")"""
  }
}
