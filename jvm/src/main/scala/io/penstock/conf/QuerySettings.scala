package io.penstock.conf

import io.penstock.errors.PenstockException

/**
 * The settings of one query: typed, checked and immutable. A value comes from the query's options, else from the
 * session, else from the application, else it is the default.
 */
final class QuerySettings private (values: Map[String, QuerySettings.Resolved]) {

  /** The value of a setting. */
  def apply[T](setting: Setting[T]): T =
    // The map is filled from the same registry, each name with a value of its own setting's type.
    values(setting.name).value.asInstanceOf[T]

  /** Where the value was set; None for a default. */
  def origin(setting: Setting[_]): Option[Scope] = values(setting.name).origin

  def mode: Mode = apply(Settings.Mode)
  def shards: Int = apply(Settings.Shards)
  def theta: Double = apply(Settings.Theta)
  def policy: PolicyChoice = apply(Settings.Policy)
  def pinnedMax: Int = apply(Settings.PinnedMax)
  def reportKeys: Boolean = apply(Settings.ReportKeys)
  def moveMaxBytesPerBatch: Long = apply(Settings.MoveMaxBytesPerBatch)
  def replicas: Int = apply(Settings.Replicas)
  def latencyTargetMs: Int = apply(Settings.LatencyTargetMs)
  def tasks: TasksChoice = apply(Settings.Tasks)

  /**
   * These settings with another value of one, for a query that runs.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_NOT_AT_RUN_TIME
   */
  def updated(option: String, text: String): QuerySettings = {
    val setting = Settings.named(option, text)
    if (setting.effect != Effect.NextBatch) {
      val able = Settings.all.filter(_.effect == Effect.NextBatch).map(_.option)
      throw new PenstockException(
        "PENSTOCK_NOT_AT_RUN_TIME",
        s"$option=$text cannot be set for a query that runs: it takes effect at ${setting.effect.name}. Allowed: " +
          s"${able.mkString(", ")}. Stop the query and start it with this value"
      )
    }
    new QuerySettings(
      values + (setting.name -> QuerySettings.Resolved(setting.parse(text, option, Scope.Query), Some(Scope.Query)))
    )
  }

  /** Name and text of every value, by name: for logs and tests. */
  def texts: Seq[(String, String)] = Settings.all.map(s => s.name -> QuerySettings.text(s, this))

  override def equals(other: Any): Boolean = other match {
    case o: QuerySettings => texts == o.texts
    case _ => false
  }
  override def hashCode(): Int = texts.hashCode()
  override def toString: String = texts.map { case (n, v) => s"$n=$v" }.mkString("QuerySettings(", ", ", ")")
}

object QuerySettings {
  final private case class Resolved(value: Any, origin: Option[Scope])

  /** Every setting at its default. */
  val default: QuerySettings = resolve(Map.empty, Map.empty, Map.empty)

  /**
   * Resolves and checks all settings.
   *
   * @param query
   *   options of the query's sink; keys of any case (Spark lower-cases them). Options that are not Penstock's are
   *   ignored
   * @param session
   *   configuration of the session, which may repeat the application's
   * @param application
   *   configuration that the application started with
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING or PENSTOCK_SETTING_SCOPE for the first wrong entry, nearest
   *   scope first, then by key
   */
  def resolve(
      query: Map[String, String],
      session: Map[String, String],
      application: Map[String, String]
  ): QuerySettings = {
    def from(entries: Map[String, String], found: Scope) =
      Settings.parsed(entries, found).map { case (setting, value) => setting.name -> Resolved(value, Some(found)) }
    val fromQuery = from(query, Scope.Query)
    // Spark copies the application's entries to every session: they are the application's.
    val fromSession =
      from(session.filterNot { case (key, value) => application.get(key).contains(value) }, Scope.Session)
    val fromApplication = from(application, Scope.Application)
    val defaults = Settings.all.map(s => s.name -> Resolved(s.default, None))
    // Later entries win.
    new QuerySettings((defaults ++ fromApplication ++ fromSession ++ fromQuery).toMap)
  }

  /**
   * Options of a query that have the bare name of a setting which a query may set, and a value that is allowed for it: who
   * wrote them may have meant it, but they are left to the sink (decision 080).
   *
   * @return
   *   the options as they are written
   */
  def unprefixed(query: Map[String, String]): Seq[String] = query.toSeq.sorted.collect {
    case (name, text)
        if Settings.all.exists(s =>
          s.scope == Scope.Query && s.name.equalsIgnoreCase(name) && s.kind.read(text.trim).nonEmpty
        ) => s"$name=$text"
  }

  private def text[T](setting: Setting[T], settings: QuerySettings): String = setting.kind.write(settings(setting))
}
