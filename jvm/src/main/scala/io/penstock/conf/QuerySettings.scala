package io.penstock.conf

import io.penstock.errors.PenstockException
import io.penstock.routing.{ShardPolicy, TasksChoice}

/**
 * The settings of one query: typed, checked and immutable. A value comes from the query's options, else from the
 * session, else from the application, else it is the default.
 */
final class QuerySettings private (values: Map[String, QuerySettings.Resolved]) {

  /** The value of a setting. */
  def apply[T](setting: Setting[T]): T =
    // The cast is safe: the map is filled from the registry, each name with a value of its setting's type.
    values(setting.name).value.asInstanceOf[T]

  /** The scope in which the value was set; None for a default. */
  def origin(setting: Setting[_]): Option[Scope] = values(setting.name).origin

  def mode: Mode = apply(Settings.Mode)
  def shards: Int = apply(Settings.Shards)
  def theta: Double = apply(Settings.Theta)
  def policy: ShardPolicy = apply(Settings.Policy)
  def pinnedMax: Int = apply(Settings.PinnedMax)
  def reportKeys: Boolean = apply(Settings.ReportKeys)
  def moveMaxBytesPerBatch: Long = apply(Settings.MoveMaxBytesPerBatch)
  def replicas: Int = apply(Settings.Replicas)
  def latencyTargetMs: Int = apply(Settings.LatencyTargetMs)
  def tasks: TasksChoice = apply(Settings.Tasks)

  /**
   * A copy of these settings in which one value is changed, for a running query.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_NOT_AT_RUN_TIME
   */
  def updated(option: String, text: String): QuerySettings = {
    val setting = Settings.named(option, text)
    if (setting.effect != Effect.NextBatch) {
      val changeable = Settings.all.filter(_.effect == Effect.NextBatch).map(_.option)
      throw new PenstockException(
        "PENSTOCK_NOT_AT_RUN_TIME",
        s"$option=$text cannot be set for a running query: it takes effect at ${setting.effect.name}. Stop the query " +
          s"and start it with this value. These options can be set for a running query: ${changeable.mkString(", ")}"
      )
    }
    new QuerySettings(
      values + (setting.name -> QuerySettings.Resolved(setting.parse(text, option, Scope.Query), Some(Scope.Query)))
    )
  }

  /** Name and text of every value, sorted by name, for logs and tests. */
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
   *   options of the query's sink, with keys in any case (Spark lower-cases them). Options that are not Penstock's are
   *   ignored
   * @param session
   *   configuration of the session, which may repeat the application's
   * @param application
   *   configuration that the application started with
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING or PENSTOCK_SETTING_SCOPE for the first invalid entry: those
   *   of the query are checked first, then those of the session and of the application, each in order of the keys
   */
  def resolve(
      query: Map[String, String],
      session: Map[String, String],
      application: Map[String, String]
  ): QuerySettings = {
    def from(entries: Map[String, String], found: Scope) =
      Settings.parsed(entries, found).map { case (setting, value) => setting.name -> Resolved(value, Some(found)) }
    val fromQuery = from(query, Scope.Query)
    // Spark copies the application's entries to every session; these copies are not settings of the session.
    val fromSession =
      from(session.filterNot { case (key, value) => application.get(key).contains(value) }, Scope.Session)
    val fromApplication = from(application, Scope.Application)
    val defaults = Settings.all.map(s => s.name -> Resolved(s.default, None))
    // Later entries win.
    new QuerySettings((defaults ++ fromApplication ++ fromSession ++ fromQuery).toMap)
  }

  /**
   * Options of a query that have the name of a query setting without a prefix, and a value that the setting allows. The
   * user may have meant the setting, but the options are left to the sink (decision 080).
   *
   * @return
   *   the options as `name=value`
   */
  def unprefixed(query: Map[String, String]): Seq[String] = query.toSeq.sorted.collect {
    case (name, text)
        if Settings.all.exists(s =>
          s.scope == Scope.Query && s.name.equalsIgnoreCase(name) && s.kind.read(text.trim).nonEmpty
        ) => s"$name=$text"
  }

  private def text[T](setting: Setting[T], settings: QuerySettings): String = setting.kind.write(settings(setting))
}
