package io.penstock.conf

/**
 * What the plugin changes in an application's configuration when it starts, decided from the configuration alone.
 * Nothing that the user has set is overwritten.
 */
object ApplicationSetup {
  val ExtensionsKey = "spark.sql.extensions"
  val ProviderKey = "spark.sql.streaming.stateStore.providerClass"

  /** Spark's own key for the number of state partitions; without it Spark takes `spark.sql.shuffle.partitions`. */
  val StatePartitionsKey = "spark.sql.streaming.internal.stateStore.partitions"

  val PluginsKey = "spark.plugins"

  /** Where procedures of SQL are found: `CALL penstock.set(...)`. */
  val CatalogKey = "spark.sql.catalog.penstock"

  val Catalog = "io.penstock.PenstockCatalog"

  val Plugin = "io.penstock.PenstockPlugin"
  val Extensions = "io.penstock.PenstockExtensions"
  val Provider = "io.penstock.PenstockStateStoreProvider"

  /**
   * One step of the set-up.
   *
   * @param change
   *   key and new value; None where nothing is changed
   * @param line
   *   what is done, or why nothing is, for the log
   */
  final case class Step(change: Option[(String, String)], line: String)

  /**
   * Checks the application's settings and decides the steps.
   *
   * @param conf
   *   the whole configuration of the application
   * @param perQuery
   *   whether queries get the provider and the number of state partitions one by one, by [[forQuery]]
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING
   */
  def plan(conf: Map[String, String], perQuery: Boolean): Seq[Step] = {
    Settings.checkApplication(conf)
    val always = ownKeys(conf) ++ Seq(catalog(conf), extensions(conf))
    if (Settings.application(Settings.Mode, conf) == Mode.Off) {
      // Queries that began with Penstock have their state in its store: they go on, a task per shard.
      Step(
        None,
        s"${Settings.Mode.key}=off: new queries run as in plain Spark, Penstock's own run one shard per task"
      ) +: always
    } else {
      val state = Seq(provider(conf), statePartitions(conf))
      always ++ (if (perQuery) state.map(atQueryStart) else state)
    }
  }

  /** Spark sends executors what begins with `spark.` only. */
  private def ownKeys(conf: Map[String, String]): Seq[Step] =
    Settings.ownEntries(conf).map { case (key, text) => Settings.named(key, text).key -> text }
      .distinct.filterNot { case (key, _) => conf.contains(key) }.map { case (key, text) => set(key, text) }

  private def catalog(conf: Map[String, String]): Step = conf.get(CatalogKey) match {
    case None => set(CatalogKey, Catalog)
    case Some(Catalog) => Step(None, s"$CatalogKey already is $Catalog: left as it is")
    case Some(other) =>
      Step(
        None,
        s"$CatalogKey is $other, set by the user: left as it is, so that clients of Spark Connect cannot set, pin and unpin"
      )
  }

  /**
   * What a query's own session gets when the query starts, where the application's settings do not carry it: the provider
   * where nobody has named one, and the number of state partitions where the provider is Penstock's. Nothing where the
   * application has the extension but not the plugin.
   *
   * @param application
   *   the whole configuration of the application
   * @param session
   *   the settings of the query's session
   */
  def forQuery(application: Map[String, String], session: Map[String, String]): Map[String, String] = {
    val plugged = names(application, PluginsKey).contains(Plugin)
    val elsewhere = session.get(ProviderKey).exists(_ != Provider)
    val conf = application ++ session.view.filterKeys(Set(ProviderKey, StatePartitionsKey))
    if (!plugged || elsewhere || Settings.application(Settings.Mode, application) == Mode.Off) Map.empty
    else Seq(provider(conf), statePartitions(conf)).flatMap(_.change).toMap
  }

  private def extensions(conf: Map[String, String]): Step = {
    val present = names(conf, ExtensionsKey)
    if (present.contains(Extensions)) Step(None, s"$ExtensionsKey already names $Extensions: left as it is")
    else if (present.isEmpty) set(ExtensionsKey, Extensions)
    else {
      val value = (present :+ Extensions).mkString(",")
      Step(Some(ExtensionsKey -> value), s"appended $Extensions to $ExtensionsKey, which is now $value")
    }
  }

  private def names(conf: Map[String, String], key: String): Seq[String] =
    conf.getOrElse(key, "").split(',').map(_.trim).filter(_.nonEmpty).toSeq

  private def provider(conf: Map[String, String]): Step = conf.get(ProviderKey) match {
    case None => set(ProviderKey, Provider)
    case Some(Provider) => Step(None, s"$ProviderKey already is $Provider: left as it is")
    case Some(other) =>
      Step(
        None,
        s"$ProviderKey is $other, set by the user: left as it is, so new queries run as in plain Spark. " +
          s"Remove the setting, or set it to $Provider, to use Penstock"
      )
  }

  private def statePartitions(conf: Map[String, String]): Step = conf.get(StatePartitionsKey) match {
    case None => set(StatePartitionsKey, Settings.application(Settings.Shards, conf).toString)
    case Some(n) =>
      Step(
        None,
        s"$StatePartitionsKey is $n, set by the user: left as it is, so new queries have $n shards whatever " +
          s"${Settings.Shards.key} says"
      )
  }

  private def atQueryStart(step: Step): Step = step.change match {
    case None => step
    case Some((key, value)) =>
      Step(None, s"a new query whose session does not set $key gets $value at its start, not in Real-Time Mode")
  }

  private def set(key: String, value: String): Step = Step(Some(key -> value), s"set $key to $value")
}
