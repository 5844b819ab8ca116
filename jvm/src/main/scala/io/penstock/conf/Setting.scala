package io.penstock.conf

import io.penstock.errors.PenstockException

/**
 * One setting. `Settings` contains all of them.
 *
 * @param name
 *   name without a prefix: it follows `spark.penstock.` in Spark's configuration, and `penstock.` in a query's options
 * @param group
 *   section of the configuration page
 * @param scope
 *   narrowest scope in which the setting may be set
 * @param unit
 *   unit of the value; "-" if it has none
 * @param since
 *   version of Penstock that introduced the setting
 * @param meaning
 *   description for users, in one to four sentences of Markdown
 */
final case class Setting[T](
    name: String,
    group: SettingGroup,
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

  /** Whether a key names this setting. Case is ignored, because Spark lower-cases options. */
  def isNamed(written: String): Boolean = key.equalsIgnoreCase(written) || option.equalsIgnoreCase(written)

  /**
   * Parses a value.
   *
   * @param writtenAs
   *   key as the user wrote it, for the error message
   * @param found
   *   scope in which the value was set
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_SETTING_SCOPE if the setting may not be set in this scope, PENSTOCK_INVALID_SETTING if the value is not
   *   allowed
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
      s"$writtenAs has the value '$text' (in ${found.location}). Allowed: ${kind.allowed}. " +
        s"Default: ${kind.write(default)}. Set an allowed value, or remove $writtenAs."
    ))
  }
}

object Setting {
  val ConfPrefix = "spark.penstock."
  val OptionPrefix = "penstock."

  /** Both prefixes are accepted everywhere, so that users need not know which of them belongs where. */
  private val Prefixes = Seq(ConfPrefix, OptionPrefix)

  /** The prefix of a key of Penstock, ignoring case; None for other keys. */
  def prefixOf(written: String): Option[String] = Prefixes.find(p => written.regionMatches(true, 0, p, 0, p.length))

  private def whereTo(scope: Scope, key: String, text: String): String = scope match {
    case Scope.Application => s"--conf $key=$text when the application starts"
    case Scope.Session => s"""spark.conf.set("$key", "$text") before the query starts"""
    case Scope.Query => s"""writeStream.option("${OptionPrefix + key.stripPrefix(ConfPrefix)}", "$text")"""
  }
}
