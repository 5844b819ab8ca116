package org.apache.spark.sql.penstock.state

import java.nio.file.Path
import java.util.UUID

import scala.collection.immutable.SortedMap
import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.commit._
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.routing.RoutingVersionLog
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.sql.types._

import io.penstock.sharding.Layout
import io.penstock.state.engine.ShardState
import io.penstock.state.format._
import io.penstock.telemetry.{StateLoad, StoreTimings}

/**
 * The checkpoint of a small query with real stores, commits, manifests, snapshots and routing versions, but without
 * tasks. It has six batches over two stores of three shards. Changes are in manifests and changelogs in turn, a column
 * family is created and removed, two shards have a snapshot, and one batch is committed twice.
 *
 * @param root
 *   State directory of the query
 */
final class WrittenCheckpoint(val root: Path, hadoop: Configuration, seed: Long) {
  import WrittenCheckpoint._

  private val random = new Random(seed)
  private val runId = UUID.randomUUID()
  private val directory = new StateDirectory(root.toString, hadoop)
  private val commits = new QueryCommits(runId, root.toString, Shards, hadoop)
  private val region = RegionSpec(0L, single = false, Seq(OperatorLease(0L, OperatorKind.WholeKey, StoreNames)))

  (0L until Batches).foreach(write)

  private def write(batch: Long): Unit = {
    if (batch == 0L || batch == 3L) {
      new RoutingVersionLog(directory, 100).append(batch, Shards, SortedMap(0L -> (batch.toInt % 2 + 1)))
    }
    commits.open(BatchSpec(runId, root.toString, batch, Shards, Seq(region)))(Map.empty)
    if (batch == SnapshotVersion) snapshots()
    commit(batch)
    if (batch == CommittedTwice) commit(batch)
  }

  private def commit(batch: Long): Unit = {
    val lineage = UUID.randomUUID()
    val payload = new ByteSink
    val stores = StoreNames.map { name =>
      var sections = Seq.empty[Section]
      val at = payload.size
      val scope = new Scope(batch, StoreKey(0L, name)) {
        override def commit(
            changes: ByteSink,
            written: Seq[Section],
            keys: Array[Long],
            operations: Array[Long]
        ): Unit = {
          payload.putBytes(changes.toByteArray)
          sections = written.map(s => s.copy(offset = s.offset + at))
        }
      }
      change(batch, provider(root.toString, name, hadoop, Some(scope)).getStore(batch, None, false, false))
      StoreCommit(
        StoreKey(0L, name),
        (0 until Shards).toArray,
        StateLoad.Empty.of(Shards),
        0L,
        Map.empty,
        sections.toArray
      )
    }
    val inline = batch % 2 == 0
    val payloadAt =
      if (inline) 0L else writeSections(Container.Changelog(batch, lineage), stores.flatMap(_.sections), payload)
    val inlined = if (inline) payload.toByteArray else null
    Commits.commit(
      commits,
      TaskCommitted(runId, batch, Commits.attempt(), "executor_h_1", Map.empty, lineage, inlined, payloadAt, stores)
    )
  }

  private def change(batch: Long, store: StateStore): Unit = {
    val lists = store.id.storeName == "lists"
    val families = if (lists) ListFamilies else Families.filter(_._1 != "gone" || batch <= RemovedIn)
    families.foreach { case (name, spec) =>
      if (name != "default") store.createColFamilyIfAbsent(name, KeySchema, ValueSchema, spec, lists, false)
      (0 until 6).foreach { _ =>
        val k = key(random.nextInt(4).toLong, random.nextInt(4).toLong)
        def v = value(random.nextLong())
        random.nextInt(if (lists) 5 else 3) match {
          case 0 => store.remove(k, name)
          case 1 | 2 => store.put(k, v, name)
          case 3 => store.merge(k, v, name)
          case 4 => store.putList(k, Array.fill(random.nextInt(3))(v), name)
        }
      }
    }
    if (!lists && batch == RemovedIn) store.removeColFamilyIfExists("gone")
    store.commit()
  }

  private def snapshots(): Unit = {
    val manifest = newest(SnapshotVersion - 1)
    val payload = new ByteSink
    val entries = for (name <- StoreNames; shard <- 0 until 2) yield {
      val store = StoreKey(0L, name)
      val at = payload.size
      new ShardLoader(directory).loadOne(manifest, store, shard).content.image.writeTo(payload)
      val length = payload.size - at
      val section = Section(store, shard, at, length, FileFormat.crc(payload.array, at, length))
      SnapshotEntry(SnapshotVersion, manifest.stores(store)(shard).lineage, section)
    }
    val file = Container.Snapshots(SnapshotVersion, UUID.randomUUID())
    commits.snapshotsWritten(SnapshotsWritten(
      runId,
      file,
      writeSections(file, entries.map(_.section), payload),
      entries
    ))
  }

  /** Writes a changelog or snapshot file and returns the offset of its payload. */
  private def writeSections(file: Container, sections: Seq[Section], payload: ByteSink): Long = {
    val kind = file match {
      case _: Container.Changelog => FileFormat.Kind.Changelog
      case _ => FileFormat.Kind.Snapshots
    }
    val body = SectionTable.encode(sections)
    directory.write(file.path, kind, body, payload.array, payload.size)
    FileFormat.HeaderBytes.toLong + body.length
  }

  private def newest(batch: Long): Manifest = directory.readManifest(batch, directory.newestGenerations()(batch))

  /** All shards in the state that the previous batch left. */
  abstract private class Scope(batch: Long, store: StoreKey) extends StoreScope {
    override def shards: Array[Int] = (0 until shardCount).toArray
    override def shardCount: Int = Shards
    override def describe: String = s"batch $batch"
    override def extractor(
        name: String,
        keySchema: StructType,
        spec: KeyStateEncoderSpec,
        prefixedMain: => Boolean
    ): ShardExtractor = ShardExtractor.of(OperatorKind.WholeKey, Layout(Shards), name, keySchema, spec, prefixedMain)
    override def open(timings: StoreTimings): Array[ShardState] =
      if (batch == 0L) Array.fill(Shards)(new ShardState)
      else Array.tabulate(Shards)(s => new ShardLoader(directory).loadOne(newest(batch - 1), store, s).content)
  }
}

object WrittenCheckpoint {
  val Shards = 3
  val Batches = 6L
  val StoreNames: Seq[String] = Seq("default", "lists")
  val KeySchema: StructType = new StructType().add("ts", LongType).add("k", LongType)
  val ValueSchema: StructType = new StructType().add("v", LongType)

  /** Column families of the store "default". */
  val Families: Seq[(String, KeyStateEncoderSpec)] = Seq(
    "default" -> NoPrefixKeyStateEncoderSpec(KeySchema),
    "range" -> RangeKeyScanStateEncoderSpec(KeySchema, Seq(0)),
    "prefix" -> PrefixKeyScanStateEncoderSpec(KeySchema, 1),
    "gone" -> NoPrefixKeyStateEncoderSpec(KeySchema)
  )

  /** Column families of the store "lists", all multi-valued. */
  val ListFamilies: Seq[(String, KeyStateEncoderSpec)] =
    Seq("default" -> NoPrefixKeyStateEncoderSpec(KeySchema), "range" -> RangeKeyScanStateEncoderSpec(KeySchema, Seq(0)))

  private val SnapshotVersion = 3L
  private val RemovedIn = 4L
  private val CommittedTwice = 4L
  private val keyOf = UnsafeProjection.create(KeySchema)
  private val valueOf = UnsafeProjection.create(ValueSchema)

  private def key(ts: Long, k: Long): UnsafeRow = keyOf(InternalRow(ts, k)).copy()
  private def value(v: Long): UnsafeRow = valueOf(InternalRow(v)).copy()

  /** Penstock's provider for a store, optionally with a given scope. */
  def provider(
      root: String,
      storeName: String,
      hadoop: Configuration,
      view: Option[StoreScope] = None
  ): ShardedStateStoreProvider = {
    val p = new ShardedStateStoreProvider {
      override protected def scope(version: Long): StoreScope = view.getOrElse(super.scope(version))
    }
    val conf = new Configuration(hadoop)
    conf.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID().toString)
    p.init(
      StateStoreId(root, 0, 0, storeName),
      KeySchema,
      ValueSchema,
      Families.head._2,
      useColumnFamilies = true,
      new StateStoreConf(new SQLConf),
      conf,
      useMultipleValuesPerKey = storeName == "lists",
      None
    )
    p
  }
}
