package io.penstock.conf

import scala.collection.mutable.ArrayBuffer

import io.penstock.errors.PenstockException
import io.penstock.routing.{ShardPolicy, StickyBinder, TasksChoice}
import io.penstock.transport.Transports

/**
 * The configuration registry: it declares every setting of Penstock once. `make docs` generates the documentation and
 * the Python package's list of settings from it.
 */
object Settings {
  private val registry = ArrayBuffer.empty[Setting[_]]

  private def entry[T](
      name: String,
      group: SettingGroup,
      kind: Kind[T],
      default: T,
      scope: Scope,
      effect: Effect,
      unit: String,
      since: String,
      meaning: String
  ): Setting[T] = {
    require(registry.forall(_.name != name), s"$name is declared twice")
    val setting = Setting(name, group, kind, default, scope, effect, unit, since, meaning)
    registry += setting
    setting
  }

  import Effect._
  import Scope._

  val Mode: Setting[Mode] = entry(
    "mode",
    SettingGroup.General,
    io.penstock.conf.Mode.kind,
    io.penstock.conf.Mode.On,
    Query,
    QueryStart,
    "-",
    "0.1.0",
    "What Penstock does for a query. `on` binds shards to tasks in every batch, `observe` computes and reports " +
      "bindings but does not use them, and `off` runs each shard in a task of its own, as plain Spark does. With " +
      "`off` for the whole application, new queries use Spark's default state store, and queries that started with " +
      "Penstock keep running."
  )

  val Shards: Setting[Int] = entry(
    "shards",
    SettingGroup.General,
    Kind.int(1, 65536),
    256,
    Application,
    NewCheckpoint,
    "shards",
    "0.1.0",
    "Number of state shards of a new query. It is fixed by the first batch of a checkpoint; a query that starts from " +
      "a checkpoint with a different number fails. Raise it for queries that run on many cores or whose shards are " +
      "too large to be balanced."
  )

  val Theta: Setting[Double] = entry(
    "theta",
    SettingGroup.Balance,
    Kind.doubleAbove(1, 10),
    StickyBinder.UsualTheta,
    Query,
    NextBatch,
    "ratio",
    "0.1.0",
    "Largest imbalance that is accepted: the busiest task's load over the mean. Lower values balance better and move " +
      "more shards; raise it, for example to 1.05, if moving a shard is expensive because its state is large."
  )

  val Policy: Setting[ShardPolicy] = entry(
    "policy",
    SettingGroup.Balance,
    Policies.shards,
    ShardPolicy.named.head,
    Query,
    QueryStart,
    "-",
    "0.1.0",
    "Policy that chooses the task of each shard. `hybrid` decides at the shuffle barrier, from the rows of the batch " +
      "and the measured cost of rows, and leaves shards on their previous tasks as far as `theta` allows. `refine` " +
      "(Elasticutor), `resourceCentric` (Elasticutor's baseline, which assigns all shards from scratch), `mixed`, " +
      "`minTable` and `minMig` (Fang et al., applied to shards instead of keys) are published algorithms that decide " +
      "from the previous batch; use them for comparison. `static` assigns tasks by shard id; `chaos(<seed>)` assigns " +
      "them at random and is meant for tests."
  )

  val PinnedMax: Setting[Int] = entry(
    "pinned.max",
    SettingGroup.Balance,
    Kind.int(0, io.penstock.sharding.Layout.MaxPinSlots),
    16,
    Query,
    NextBatch,
    "keys",
    "0.1.0",
    "Largest number of keys that may be pinned in a region (stateful operators between two shuffles). A pinned key " +
      "and its state have a shard of their own. `hybrid` pins a heavy key if its shard has more load than a task " +
      "should have and also holds other keys; the key returns to its base shard when that shard can carry it again. " +
      "0 pins no keys."
  )

  val Tasks: Setting[TasksChoice] = entry(
    "tasks",
    SettingGroup.Balance,
    Policies.tasks,
    TasksChoice.named.head,
    Query,
    NextBatch,
    "-",
    "0.1.0",
    "Number of tasks of a batch's stateful stages, at most one per shard. `cores` uses one task per core of the " +
      "application, and a number sets a fixed count. `auto` uses the number that makes a batch shortest according to " +
      "the query's own batches, at most one per core. `chaos(<seed>)` uses a random number in every batch and is " +
      "meant for tests."
  )

  val ReportKeys: Setting[Boolean] = entry(
    "report.keys",
    SettingGroup.Balance,
    Kind.boolean,
    true,
    Query,
    NextBatch,
    "-",
    "0.1.0",
    "Whether progress, logs and the UI report heavy keys by value. Parts that match " +
      "`spark.sql.redaction.string.regex` are redacted. Set to false to report heavy keys by their 32-bit hash " +
      "instead; a hash is not anonymous, because anyone who can guess a key can check the guess."
  )

  val Python: Setting[String] = entry(
    "python",
    SettingGroup.Sidecars,
    Kind.program,
    "auto",
    Application,
    ApplicationStart,
    "-",
    "0.1.0",
    "Python interpreter of the planner sidecar beside the driver and of the transfer sidecars beside executors. The " +
      "package `penstock` must be installed for it. `auto` uses PySpark's interpreter " +
      "(`spark.pyspark.driver.python`, `spark.pyspark.python`, `PYSPARK_DRIVER_PYTHON`, `PYSPARK_PYTHON`; the two " +
      "driver names apply to the driver only), else the one that the wheel was installed for, else `python3`."
  )

  val Transport: Setting[String] = entry(
    "transport",
    SettingGroup.Sidecars,
    TransportWords.kind,
    Transports.Auto,
    Application,
    ApplicationStart,
    "-",
    "0.1.0",
    "Transport that the transfer sidecars use to move shards between the memories of executors. `auto` uses the best " +
      s"that both executors support of ${TransportWords.automatic}. A transport set by name, such as " +
      s"${TransportWords.byName}, is used if it is available, else `tcp`. If executors must encrypt what they send to " +
      s"each other, only ${TransportWords.encrypting} can be used. Shards that cannot be transferred are read from the " +
      "checkpoint; with `off` this is true of all shards."
  )

  val MoveMaxBytesPerBatch: Setting[Long] = entry(
    "move.maxBytesPerBatch",
    SettingGroup.Executors,
    Kind.bytes(1L << 40),
    256L << 20,
    Query,
    NextBatch,
    "bytes",
    "0.1.0",
    "Largest amount of state that a region (stateful operators between two shuffles) may move to other executors at " +
      "the start of a batch by plan. New replicas (`replicas`) have a second budget of the same size. Shards with " +
      "the most load go first, at least one in each batch, and the others wait for later batches. Lower it if moves " +
      "delay batches."
  )

  val Replicas: Setting[Int] = entry(
    "replicas",
    SettingGroup.Executors,
    Kind.int(1, 2),
    1,
    Query,
    NextBatch,
    "executors",
    "0.1.0",
    "Number of executors that hold each shard in memory, as far as memory allows. With 2, a failed executor costs " +
      "one batch and no reload from the checkpoint, because the replica is at most one batch behind. This takes " +
      "twice the memory and sends each batch's changes over the network. Shards with the most load are replicated " +
      "first."
  )

  val LatencyTargetMs: Setting[Int] = entry(
    "latency.targetMs",
    SettingGroup.Executors,
    Kind.int(0, 3600000),
    0,
    Query,
    NextBatch,
    "ms",
    "0.1.0",
    "Target mean time from a row's arrival to the end of its batch. Penstock requests the number of executors that " +
      "this takes according to the query's batches, between `executors.min` and `executors.max`, and releases those " +
      "that are not needed. 0 leaves executor allocation to Spark. With `spark.dynamicAllocation.enabled` Spark " +
      "allocates executors, and Penstock only reports how many it would request."
  )

  val ExecutorsMin: Setting[Int] = entry(
    "executors.min",
    SettingGroup.Executors,
    Kind.int(1, 16384),
    1,
    Application,
    ApplicationStart,
    "executors",
    "0.1.0",
    "Smallest number of executors to which `latency.targetMs` may scale the application."
  )

  val ExecutorsMax: Setting[Int] = entry(
    "executors.max",
    SettingGroup.Executors,
    Kind.int(0, 16384),
    0,
    Application,
    ApplicationStart,
    "executors",
    "0.1.0",
    "Largest number of executors to which `latency.targetMs` may scale the application. 0 is the largest number of " +
      "executors that the application has had at once."
  )

  val HandOverLimitMs: Setting[Int] = entry(
    "handOver.limitMs",
    SettingGroup.Executors,
    Kind.int(0, 600000),
    20000,
    Application,
    ApplicationStart,
    "ms",
    "0.1.0",
    "Longest time that an executor may take to hand its shards over to other executors before it ends, when it is " +
      "decommissioned or released. Shards that are not handed over in time are read from the checkpoint. 0 disables " +
      "the hand-over. Raise it if executors hold more state than they can send in this time."
  )

  val CheckpointFsync: Setting[Boolean] = entry(
    "checkpoint.fsync",
    SettingGroup.State,
    Kind.boolean,
    false,
    Session,
    QueryStart,
    "-",
    "0.1.0",
    "Whether `io.penstock.LocalCheckpointFileManager` waits until each file is on disk. Set to true if a checkpoint " +
      "on a local disk must survive a power failure. Spark's own manager does not wait on local disks."
  )

  val StateInlineBytes: Setting[Long] = entry(
    "state.inlineBytes",
    SettingGroup.State,
    Kind.bytes(1L << 30),
    4L << 20,
    Session,
    QueryStart,
    "bytes",
    "0.1.0",
    "Size of the state changes of a batch up to which tasks send them to the driver, which writes them into the " +
      "batch's manifest. Each task has a part of this limit in proportion to its shards; a task with more changes " +
      "writes a changelog file. 0 writes a file in every case. Lower it if the driver is short of memory."
  )

  val StateSnapshotBytes: Setting[Long] = entry(
    "state.snapshotBytes",
    SettingGroup.State,
    Kind.bytes(1L << 40),
    64L << 20,
    Session,
    QueryStart,
    "bytes",
    "0.1.0",
    "Largest amount of a store's state, by its size on the heap, that all executors together write as snapshots in " +
      "the background of one batch. Shards with the most changes go first, and the others wait; a task writes at " +
      "least one snapshot that is due. Raise it for faster restarts, lower it if snapshots slow down batches."
  )

  val StateMaxBytes: Setting[HeapLimit] = entry(
    "state.maxBytes",
    SettingGroup.State,
    HeapLimit.kind,
    HeapLimit.Share(60),
    Application,
    ApplicationStart,
    "bytes",
    "0.1.0",
    "Largest part of an executor's heap that the state of all queries may use, as a size or a share of the heap. A " +
      "batch that needs more fails with `PENSTOCK_STATE_TOO_LARGE` before the executor runs out of memory. Committed " +
      "state is not lost; start the query again with more memory or more executors. `100%` sets no limit but the " +
      "heap itself."
  )

  /** All settings, sorted by name. */
  val all: Seq[Setting[_]] = registry.sortBy(_.name).toSeq

  /**
   * Checks every entry of Penstock in the application's configuration; other entries are ignored.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING or PENSTOCK_INVALID_SETTING for the first invalid entry in order of the keys
   */
  def checkApplication(conf: Map[String, String]): Unit = parsed(conf, Application).foreach(_ => ())

  /**
   * The value of one setting in the application's configuration, or its default.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_INVALID_SETTING
   */
  def application[T](setting: Setting[T], conf: Map[String, String]): T = lookedUp(setting)(conf.get)

  /**
   * The value of one setting in a configuration that is read by key, or its default. A Hadoop configuration is one: it
   * holds the settings of the session and of the application.
   *
   * @param find
   *   returns the text of a key, None if the key is not set
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_INVALID_SETTING
   */
  def lookedUp[T](setting: Setting[T])(find: String => Option[String]): T =
    Seq(setting.key, setting.option).flatMap(key => find(key).map(setting.parse(_, key, Application))).headOption
      .getOrElse(setting.default)

  /** The entries with a prefix of Penstock, sorted by key. */
  private[conf] def ownEntries(entries: Map[String, String]): Seq[(String, String)] =
    entries.filter { case (key, _) => Setting.prefixOf(key).nonEmpty }.toSeq.sortBy(_._1)

  /**
   * The settings that are set in one scope, with their values.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING or PENSTOCK_SETTING_SCOPE for the first invalid entry in order
   *   of the keys
   */
  private[conf] def parsed(entries: Map[String, String], at: Scope): Seq[(Setting[_], Any)] = {
    val found = ownEntries(entries).map { case (written, text) =>
      val setting = named(written, text)
      // Spark lower-cases options, so the name is taken from the registry.
      (setting, Setting.prefixOf(written).getOrElse("") + setting.name, text)
    }
    found.groupBy(_._1).foreach { case (setting, same) =>
      if (same.map(_._3.trim).distinct.size > 1) {
        val both = same.map { case (_, key, text) => s"$key=$text" }.mkString(" and ")
        throw new PenstockException(
          "PENSTOCK_INVALID_SETTING",
          s"$both were found in ${at.location}, and both set ${setting.key}. Remove one of them."
        )
      }
    }
    found.map { case (setting, key, text) => setting -> setting.parse(text, key, at) }
  }

  /**
   * The setting with this name, in any case. The name may be the key, the query option, or, for a running query, the
   * name without a prefix.
   *
   * @param written
   *   name as the user wrote it
   * @param value
   *   value as the user wrote it, for the error message
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING
   */
  private[penstock] def named(written: String, value: String): Setting[_] = {
    val prefix = Setting.prefixOf(written)
    all.find(s => if (prefix.isEmpty) s.name.equalsIgnoreCase(written) else s.isNamed(written)).getOrElse {
      def distance(key: String): Int = EditDistance(written.toLowerCase, key.toLowerCase)
      val similar = math.max(3, (written.length - prefix.fold(0)(_.length)) / 3)
      val nearest = Some(all.map(prefix.getOrElse("") + _.name).minBy(distance)).filter(distance(_) <= similar)
      throw new PenstockException(
        "PENSTOCK_UNKNOWN_SETTING",
        s"$written=$value is not a setting of Penstock. ${nearest.fold("")(key => s"Did you mean $key? ")}Correct " +
          "the key or remove it; `penstock config` lists all settings."
      )
    }
  }
}
