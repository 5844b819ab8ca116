package org.apache.spark.sql.penstock.benchmarks

import java.nio.file.Path
import java.util.UUID

import scala.util.Random

import org.apache.spark.TaskContext
import org.apache.spark.TaskContextImpl
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.commit.StateCommits
import org.apache.spark.sql.penstock.lease._

import io.penstock.benchmarks.{LoadedKeys, Side}

/**
 * A state store of a side outside of a query. Its keys are the numbers from 0. While the store is open, the calling
 * thread has the context of a task and, for Penstock, a lease of all shards.
 *
 * @param compresses
 *   whether values can be compressed, because they are mostly zeros
 */
final class StoreSetup(
    spark: classic.SparkSession,
    side: Side,
    shape: StoreShape,
    keys: Int,
    directory: Path,
    compresses: Boolean = true
) {
  private val session = {
    val own = spark.newSession()
    side.settings.foreach { case (k, v) => own.conf.set(k, v) }
    own
  }
  // Creates the coordinator of state stores on the driver, to which providers report. Spark creates it with a query.
  session.streams.stateStoreCoordinator: Unit

  private val runId = UUID.randomUUID()
  private val root = directory.resolve("state").toUri.toString
  private val id = StateStoreId(root, 0L, 0)
  private val provider = newProvider(runId)
  private val region = RegionSpec(
    0L,
    single = false,
    Seq(OperatorLease(0L, shape.kind, Seq(StateStoreId.DEFAULT_STORE_NAME)))
  )

  private val key = shape.newKey()
  private val bound = shape.newKey()
  private val value = StoreShape.newValue()
  private var version = 0L
  private var store: StateStore = _
  private var context: TaskContextImpl = _
  private var first = 0L

  load()

  /** Opens the newest version. */
  def open(): Unit = {
    begin()
    if (side.mode == "on") {
      val lease =
        StateCommits.current.leases
          .open(session, BatchSpec(runId, root, version, side.statePartitions, Seq(region)))(Map.empty)
      TaskLeases.install(context, lease(region.region), Array.range(0, side.statePartitions))
    }
    store = provider.getStore(version)
    first = Random.nextInt(keys).toLong
  }

  /**
   * Opens the newest version and reads an entry, as an executor does that has nothing of the store in memory. For plain
   * Spark.
   *
   * @return
   *   function that closes the store
   */
  def openElsewhere(): () => Unit = {
    begin()
    val other = newProvider(UUID.randomUUID())
    val opened = other.getStore(version)
    require(opened.get(keyOf(0), StateStore.DEFAULT_COL_FAMILY_NAME) != null, s"side ${side.name}: an entry is missing")
    () => {
      opened.abort()
      end()
      other.close()
    }
  }

  /** Discards the changes since `open`. */
  def close(): Unit = {
    store.abort()
    end()
  }

  /** Commits the changes since `open` as the newest version. */
  def commit(): Unit = {
    version = store.commit()
    end()
  }

  /** The value of the i-th key, counted from the random first key of this opening. */
  def get(i: Int): UnsafeRow = store.get(keyOf(i), StateStore.DEFAULT_COL_FAMILY_NAME)

  def put(i: Int): Unit = {
    value.setLong(0, version)
    store.put(keyOf(i), value, StateStore.DEFAULT_COL_FAMILY_NAME)
  }

  def remove(i: Int): Unit = store.remove(keyOf(i), StateStore.DEFAULT_COL_FAMILY_NAME)

  /** Reads all entries with a prefix, and returns the sum of a field of them. */
  def scanPrefix(i: Int): Long = {
    keyOf(i)
    val prefix = StoreSetup.prefix
    prefix.setLong(0, key.getLong(0))
    sum(store.prefixScan(prefix, StateStore.DEFAULT_COL_FAMILY_NAME), StoreShape.KeysOfPrefix)
  }

  /** Reads a hundred entries in key order, and returns the sum of a field of them. */
  def scanRange(i: Int): Long = {
    val from = math.min(keyOf(i).getLong(0), keys.toLong - StoreSetup.KeysOfRange)
    shape.fill(key, from)
    shape.fill(bound, from + StoreSetup.KeysOfRange)
    sum(store.rangeScan(Some(key), Some(bound), StateStore.DEFAULT_COL_FAMILY_NAME), StoreSetup.KeysOfRange)
  }

  /** Memory of the store in bytes, as its provider reports it. */
  def memoryBytes: Long = {
    open()
    // Some providers report their memory only after a commit.
    put(0)
    version = store.commit()
    val used = store.metrics.memoryUsedBytes
    end()
    used
  }

  private def newProvider(runId: UUID) = StateStoreProvider.createAndInit(
    StateStoreProviderId(id, runId),
    shape.keySchema,
    StoreShape.valueSchema,
    shape.spec,
    useColumnFamilies = false,
    new StateStoreConf(session.sessionState.conf),
    session.sessionState.newHadoopConf(),
    useMultipleValuesPerKey = false,
    None
  )

  private def keyOf(i: Int): UnsafeRow = {
    shape.fill(key, (first + i * LoadedKeys.Stride) % keys)
    key
  }

  private def sum(entries: StateStoreIterator[UnsafeRowPair], expected: Int): Long = {
    var sum = 0L
    var count = 0
    while (entries.hasNext) {
      sum += entries.next().value.getLong(1)
      count += 1
    }
    entries.close()
    if (count != expected)
      throw new IllegalStateException(s"side ${side.name}: a scan found $count entries, expected $expected")
    sum
  }

  private def load(): Unit = {
    open()
    first = 0L
    (0 until keys).foreach { i =>
      shape.fill(key, i.toLong)
      value.setLong(1, i.toLong)
      if (!compresses) (2 until value.numFields).foreach(value.setLong(_, StoreSetup.random.nextLong()))
      store.put(key, value, StateStore.DEFAULT_COL_FAMILY_NAME)
    }
    commit()
  }

  private def begin(): Unit = {
    context = TaskContext.empty()
    TaskContext.setTaskContext(context)
  }

  private def end(): Unit = {
    context.markTaskCompleted(None)
    TaskContext.unset()
  }
}

object StoreSetup {
  private val KeysOfRange = 100
  private val random = new Random(1)

  private val prefix = StoreShape.row(1)
}
