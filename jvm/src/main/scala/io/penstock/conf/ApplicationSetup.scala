package io.penstock.conf

/**
 * Decides what the plugin changes in an application's configuration at its start. The decision depends on the
 * configuration alone, and no value that the user has set is overwritten.
 */
object ApplicationSetup {
  val ExtensionsKey = "spark.sql.extensions"
  val ProviderKey = "spark.sql.streaming.stateStore.providerClass"

  /** Spark's key for the number of state partitions. Without it Spark uses `spark.sql.shuffle.partitions`. */
  val StatePartitionsKey = "spark.sql.streaming.internal.stateStore.partitions"

  val PluginsKey = "spark.plugins"

  /** Key of the catalog that contains the SQL procedures, such as `CALL penstock.set(...)`. */
  val CatalogKey = "spark.sql.catalog.penstock"

  val Catalog = "io.penstock.PenstockCatalog"

  val Plugin = "io.penstock.PenstockPlugin"
  val Extensions = "io.penstock.PenstockExtensions"
  val Provider = "io.penstock.PenstockStateStoreProvider"

  /**
   * One step of the set-up.
   *
   * @param change
   *   key and new value; None if the step changes nothing
   * @param line
   *   log line that says what is changed, or why nothing is
   */
  final case class Step(change: Option[(String, String)], line: String)

  /**
   * Checks the application's settings and decides the steps.
   *
   * @param conf
   *   complete configuration of the application
   * @param perQuery
   *   whether [[forQuery]] sets the provider and the number of state partitions for each query
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING
   */
  def plan(conf: Map[String, String], perQuery: Boolean): Seq[Step] = {
    Settings.checkApplication(conf)
    val always = ownKeys(conf) ++ Seq(catalog(conf), extensions(conf))
    if (Settings.application(Settings.Mode, conf) == Mode.Off) {
      // The state of queries that started with Penstock is in its store: they keep running with one task per shard.
      Step(
        None,
        s"${Settings.Mode.key}=off: new queries run as in plain Spark, queries that started with Penstock run one " +
          "task per shard"
      ) +: always
    } else {
      val state = Seq(provider(conf), statePartitions(conf))
      always ++ (if (perQuery) state.map(atQueryStart) else state)
    }
  }

  /** Copies entries without the prefix `spark.`, because Spark sends only keys with that prefix to executors. */
  private def ownKeys(conf: Map[String, String]): Seq[Step] =
    Settings.ownEntries(conf).map { case (key, text) => Settings.named(key, text).key -> text }
      .distinct.filterNot { case (key, _) => conf.contains(key) }.map { case (key, text) => set(key, text) }

  private def catalog(conf: Map[String, String]): Step = conf.get(CatalogKey) match {
    case None => set(CatalogKey, Catalog)
    case Some(Catalog) => Step(None, s"$CatalogKey is already $Catalog")
    case Some(other) =>
      Step(
        None,
        s"$CatalogKey is $other, set by the user, and is not changed, so clients of Spark Connect cannot call the " +
          "procedures set, pin and unpin"
      )
  }

  /**
   * Settings to add to a query's session when the query starts and the application's configuration does not contain
   * them: the provider if none is set, and the number of state partitions if the provider is Penstock's. Empty if the
   * application has the extension but not the plugin.
   *
   * @param application
   *   complete configuration of the application
   * @param session
   *   settings of the query's session
   */
  def forQuery(application: Map[String, String], session: Map[String, String]): Map[String, String] = {
    val plugged = names(application, PluginsKey).contains(Plugin)
    val otherProvider = session.get(ProviderKey).exists(_ != Provider)
    val conf = application ++ session.view.filterKeys(Set(ProviderKey, StatePartitionsKey))
    if (!plugged || otherProvider || Settings.application(Settings.Mode, application) == Mode.Off) Map.empty
    else Seq(provider(conf), statePartitions(conf)).flatMap(_.change).toMap
  }

  private def extensions(conf: Map[String, String]): Step = {
    val present = names(conf, ExtensionsKey)
    if (present.contains(Extensions)) Step(None, s"$ExtensionsKey already contains $Extensions")
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
    case Some(Provider) => Step(None, s"$ProviderKey is already $Provider")
    case Some(other) =>
      Step(
        None,
        s"$ProviderKey is $other, set by the user, and is not changed, so new queries run as in plain Spark. " +
          s"To use Penstock, remove the setting or set it to $Provider"
      )
  }

  private def statePartitions(conf: Map[String, String]): Step = conf.get(StatePartitionsKey) match {
    case None => set(StatePartitionsKey, Settings.application(Settings.Shards, conf).toString)
    case Some(n) =>
      Step(
        None,
        s"$StatePartitionsKey is $n, set by the user, and is not changed, so new queries have $n shards; " +
          s"${Settings.Shards.key} has no effect"
      )
  }

  private def atQueryStart(step: Step): Step = step.change match {
    case None => step
    case Some((key, value)) =>
      Step(
        None,
        s"$key is set to $value at the start of each new query whose session does not set it, except in Real-Time Mode"
      )
  }

  private def set(key: String, value: String): Step = Step(Some(key -> value), s"set $key to $value")
}
