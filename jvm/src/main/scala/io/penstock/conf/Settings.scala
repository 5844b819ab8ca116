package io.penstock.conf

import scala.collection.mutable.ArrayBuffer

import io.penstock.errors.PenstockException

/**
 * The configuration registry: every setting of Penstock, once. The documentation and the Python side's list are
 * generated from it (`make docs`).
 */
object Settings {
  private val registry = ArrayBuffer.empty[Setting[_]]

  private def entry[T](
      name: String,
      kind: Kind[T],
      default: T,
      scope: Scope,
      effect: Effect,
      unit: String,
      since: String,
      meaning: String
  ): Setting[T] = {
    require(registry.forall(_.name != name), s"$name is declared twice")
    val setting = Setting(name, kind, default, scope, effect, unit, since, meaning)
    registry += setting
    setting
  }

  import Effect._
  import Scope._

  val Mode: Setting[Mode] = entry(
    "mode",
    io.penstock.conf.Mode.kind,
    io.penstock.conf.Mode.On,
    Query,
    QueryStart,
    "-",
    "0.1.0",
    "What Penstock does: `on` binds shards to tasks in every batch, `observe` computes and reports bindings without " +
      "using them, `off` routes nothing: a task runs one shard. With `off` for the whole application new " +
      "queries use Spark's own state store; those that began with Penstock go on."
  )

  val Shards: Setting[Int] = entry(
    "shards",
    Kind.int(1, 65536),
    256,
    Application,
    NewCheckpoint,
    "shards",
    "0.1.0",
    "Number of state shards of new queries. Spark fixes it with a query's first batch; a query that starts from a " +
      "checkpoint with another number fails."
  )

  val Theta: Setting[Double] = entry(
    "theta",
    Kind.doubleAbove(1, 10),
    1.003,
    Query,
    NextBatch,
    "ratio",
    "0.1.0",
    "Balance that the policy aims at: the busiest task's load over the mean load. Smaller is better balanced " +
      "and moves more shards: 1.05 suits executors that must load a large state for each shard that comes to them."
  )

  val Policy: Setting[PolicyChoice] = entry(
    "policy",
    PolicyChoice.kind,
    PolicyChoice.Hybrid,
    Query,
    QueryStart,
    "-",
    "0.1.0",
    "What chooses the task of each shard: `hybrid` does at the shuffle barrier, by the batch's own rows and what rows " +
      "were seen to cost, and keeps the previous owners as far as `theta` allows. To compare with, as published, by what " +
      "the batch before has shown: `refine` (Elasticutor), `resourceCentric` (which it is compared with: all shards are " +
      "dealt out anew), `mixed`, `minTable`, `minMig` (Fang et al., with shards for keys). " +
      "`static` goes by shard id, `chaos(<seed>)` is random, for tests."
  )

  val PinnedMax: Setting[Int] = entry(
    "pinned.max",
    Kind.int(0, io.penstock.sharding.Layout.MaxPinSlots),
    16,
    Query,
    NextBatch,
    "keys",
    "0.1.0",
    "How many keys of a stateful part of a query may be pinned, each to a shard of its own, with its state: `hybrid` does " +
      "where a shard has more load than a task should have, and the key is not all of it. They return to their base shards when nothing " +
      "has been lost by that for a while."
  )

  val Tasks: Setting[TasksChoice] = entry(
    "tasks",
    TasksChoice.kind,
    TasksChoice.Cores,
    Query,
    NextBatch,
    "-",
    "0.1.0",
    "How many tasks a batch's stateful stages have: `cores` is one per core of the application, `auto` is as many as " +
      "make a batch shortest by what its own batches have shown (at most `cores`), a number is that many (never more than " +
      "shards), `chaos(<seed>)` is another number in every batch, for tests."
  )

  val ReportKeys: Setting[Boolean] = entry(
    "report.keys",
    Kind.boolean,
    true,
    Query,
    NextBatch,
    "-",
    "0.1.0",
    "Whether heavy keys are told by their values, in progress, logs and the UI, without what " +
      "`spark.sql.redaction.string.regex` matches. With `false` they are told by their 32-bit hash, which is no " +
      "anonymisation: who can guess a key can check the guess."
  )

  val Python: Setting[String] = entry(
    "python",
    Kind.program,
    "auto",
    Application,
    ApplicationStart,
    "-",
    "0.1.0",
    "The Python of the processes beside the driver, which plans, and beside executors; it needs the package `penstock`. " +
      "`auto`: PySpark's (`spark.pyspark.driver.python` for the driver, `spark.pyspark.python`, `PYSPARK_DRIVER_PYTHON`, " +
      "`PYSPARK_PYTHON`), else the one that the wheel was installed for, else `python3`."
  )

  val Transport: Setting[String] = entry(
    "transport",
    Kind.choice("transport", Seq("off", "auto", "local", "tcp", "mpi", "verbs").map(word => word -> word))(identity),
    "auto",
    Application,
    ApplicationStart,
    "-",
    "0.1.0",
    "How shards travel from one executor's memory to another's, by a Python process beside each: `auto` is the best that both " +
      "have of `local` (shared memory of one host), `verbs` (RDMA) and `tcp`; `mpi` and the others are used where they are " +
      "named and can be had, else `tcp`. What does not come, and with `off` everything, is read from the checkpoint."
  )

  val MoveMaxBytesPerBatch: Setting[Long] = entry(
    "move.maxBytesPerBatch",
    Kind.bytes(1L << 40),
    256L << 20,
    Query,
    NextBatch,
    "bytes",
    "0.1.0",
    "How much state of a stateful part of a query may be sent to other executors by plan, and as much again as first copies (`replicas`), " +
      "while a batch begins: the shards with most load first, and one at least. The others wait for later batches."
  )

  val Replicas: Setting[Int] = entry(
    "replicas",
    Kind.int(1, 2),
    1,
    Query,
    NextBatch,
    "executors",
    "0.1.0",
    "How many executors have each shard in memory, as far as they have room. With 2, an executor that dies costs a batch and " +
      "no reload: the other is at most a batch behind. It takes twice the memory, and each batch's changes travel. The shards " +
      "with most load come first."
  )

  val LatencyTargetMs: Setting[Int] = entry(
    "latency.targetMs",
    Kind.int(0, 3600000),
    0,
    Query,
    NextBatch,
    "ms",
    "0.1.0",
    "Mean time from a row's arrival to the end of its batch that is wanted. Spark is asked for as many executors as that takes, " +
      "by what the query's batches have shown, and given back those that it does not take, between `executors.min` and " +
      "`executors.max`. 0: executors are nobody's business but Spark's. With `spark.dynamicAllocation.enabled` Spark decides, " +
      "and what would be asked for is only told."
  )

  val ExecutorsMin: Setting[Int] = entry(
    "executors.min",
    Kind.int(1, 16384),
    1,
    Application,
    ApplicationStart,
    "executors",
    "0.1.0",
    "Executors that there are at least, where `latency.targetMs` decides."
  )

  val ExecutorsMax: Setting[Int] = entry(
    "executors.max",
    Kind.int(0, 16384),
    0,
    Application,
    ApplicationStart,
    "executors",
    "0.1.0",
    "Executors that there are at most, where `latency.targetMs` decides. 0: as many as there have been at once."
  )

  val HandOverLimitMs: Setting[Int] = entry(
    "handOver.limitMs",
    Kind.int(0, 600000),
    20000,
    Application,
    ApplicationStart,
    "ms",
    "0.1.0",
    "How long an executor that is decommissioned or given back may take to hand the shards in its memory to others before it " +
      "ends. What it does not hand over is read from the checkpoint; with 0 that is all of it."
  )

  val CheckpointFsync: Setting[Boolean] = entry(
    "checkpoint.fsync",
    Kind.boolean,
    false,
    Session,
    QueryStart,
    "-",
    "0.1.0",
    "Whether `io.penstock.LocalCheckpointFileManager` waits until each file has reached the disk, so that a checkpoint " +
      "survives a loss of power. Spark's own manager does not wait on local disks."
  )

  val StateInlineBytes: Setting[Long] = entry(
    "state.inlineBytes",
    Kind.bytes(1L << 30),
    4L << 20,
    Session,
    QueryStart,
    "bytes",
    "0.1.0",
    "Changes of state up to this size per batch go to the driver, which writes them into the batch's manifest; an attempt " +
      "whose share is larger writes a changelog file of its own. 0: always a file."
  )

  val StateSnapshotBytes: Setting[Long] = entry(
    "state.snapshotBytes",
    Kind.bytes(1L << 40),
    64L << 20,
    Session,
    QueryStart,
    "bytes",
    "0.1.0",
    "How much of a store may be written as snapshots in the background of one batch, by size on the heap, over all " +
      "executors. Shards that do not fit wait, those with most changes first; a task writes at least one that is due."
  )

  val StateMaxBytes: Setting[HeapLimit] = entry(
    "state.maxBytes",
    HeapLimit.kind,
    HeapLimit.Share(60),
    Application,
    ApplicationStart,
    "bytes",
    "0.1.0",
    "How much heap the state of all queries may hold in one executor. A batch that needs more fails with " +
      "`PENSTOCK_STATE_TOO_LARGE` before the executor runs out of memory; nothing that was committed is lost, and the " +
      "query goes on when there is more room. `100%` is no limit but the heap's own."
  )

  /** All settings, by name. */
  val all: Seq[Setting[_]] = registry.sortBy(_.name).toSeq

  /**
   * Checks every `spark.penstock.*` entry of the application's configuration; other entries are ignored.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING or PENSTOCK_INVALID_SETTING for the first entry, by key, that is wrong
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
   * The value of one setting where values are looked up by key, or its default: in a Hadoop configuration, which holds the
   * session's settings and the application's.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_INVALID_SETTING
   */
  def lookedUp[T](setting: Setting[T])(find: String => Option[String]): T =
    Seq(setting.key, setting.option).flatMap(key => find(key).map(setting.parse(_, key, Application))).headOption
      .getOrElse(setting.default)

  /** The entries of one place that are meant for Penstock, by key. */
  private[conf] def ownEntries(entries: Map[String, String]): Seq[(String, String)] =
    entries.filter { case (key, _) => Setting.prefixOf(key).nonEmpty }.toSeq.sortBy(_._1)

  /**
   * The settings that one place has, with their values.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_UNKNOWN_SETTING, PENSTOCK_INVALID_SETTING, PENSTOCK_SETTING_SCOPE for the first entry, by key, that is wrong
   */
  private[conf] def parsed(entries: Map[String, String], at: Scope): Seq[(Setting[_], Any)] = {
    val found = ownEntries(entries).map { case (written, text) =>
      val setting = named(written, text)
      // Spark has put options into lower case.
      (setting, Setting.prefixOf(written).getOrElse("") + setting.name, text)
    }
    found.groupBy(_._1).foreach { case (setting, same) =>
      if (same.map(_._3.trim).distinct.size > 1) {
        val both = same.map { case (_, key, text) => s"$key=$text" }.mkString(" and ")
        throw new PenstockException(
          "PENSTOCK_INVALID_SETTING",
          s"$both were found in ${at.location}, and both are ${setting.key}. Remove one."
        )
      }
    }
    found.map { case (setting, key, text) => setting -> setting.parse(text, key, at) }
  }

  /**
   * The setting with a name: its key, its query option's, in any case, or where it is set for a query that runs its name
   * alone.
   *
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
        s"$written=$value is no setting of Penstock. ${nearest.fold("")(key => s"Did you mean $key? ")}Correct the key, or " +
          "remove it; `penstock config` lists all."
      )
    }
  }
}
