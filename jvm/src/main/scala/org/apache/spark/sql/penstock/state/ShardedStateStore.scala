package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.shims.VersionedStateStore
import org.apache.spark.sql.penstock.telemetry.TaskMeter
import org.apache.spark.sql.types.StructType

import io.penstock.errors.PenstockException
import io.penstock.metrics.{MetricOutput, Metrics}
import io.penstock.state.engine.{KeyBytes, Overlay, ShardState}
import io.penstock.state.format._
import io.penstock.state.memory.ChangesMemory
import io.penstock.telemetry.{StateInUse, StoreActivity, StoreTimings}

/**
 * The store that a stateful operator reads and writes: a view of the shards of its task at one version. Changes stay in
 * the view until `commit`. The committed content below is never changed.
 */
final class ShardedStateStore(
    override val id: StateStoreId,
    override val version: Long,
    scope: StoreScope,
    families: StoreFamilies,
    conf: StateStoreConf,
    private var readOnly: Boolean
) extends VersionedStateStore {
  import ShardedStateStore._

  private val task = Option(TaskContext.get())
  // Registered before anything is opened: listeners are called in reverse order, and later ones may still read state.
  task.foreach(_.addTaskCompletionListener[Unit](_ => scope.close()))
  private val timings = new StoreTimings
  private val below: Array[ShardState] = scope.open(timings)
  private val moves = scope.shards.iterator.map(s => s -> scope.moves(s)).filterNot(_._2.isEmpty).toMap
  private val changesMemory = new ChangesMemory(scope.memory)
  private val views = mutable.LinkedHashMap[String, FamilyView]()
  private val removed = mutable.LinkedHashSet[String]()
  private var last: FamilyView = _
  private var state: State = Open
  // Only rows from the checkpoint are validated: another query or an older Spark may have written them.
  private var validated = !conf.formatValidationEnabled || timings.loadedShards == 0
  private var commitNs = 0L
  private var committedBytes = 0
  private var overlayBytes = 0L

  private val inUse = task.fold(new StateInUse)(TaskMeter.stateInUse(_))
  families.all.foreach(f => views(f.name) = view(f))
  task.foreach(_.addTaskCompletionListener[Unit] { _ =>
    if (state == Open) state = Aborted
    changesMemory.release()
  })

  /** Allows writing to a store that was opened for reading, when the task goes on to its save operator. */
  def makeWritable(): Unit = readOnly = false

  // ---- reading

  override def get(key: UnsafeRow, family: String): UnsafeRow = {
    val v = readable("get", key, family)
    val value = v.get(key)
    if (!validated && value != null && !families.useColumnFamilies) {
      validated = true
      StateStoreProvider.validateStateRowFormat(key, families.keySchema, value, families.valueSchema, id, conf)
    }
    value
  }

  override def multiGet(keys: Array[UnsafeRow], family: String): Iterator[UnsafeRow] = {
    val v = readable("multiGet", keys, family)
    keys.iterator.map(v.get)
  }

  override def keyExists(key: UnsafeRow, family: String): Boolean = readable("keyExists", key, family).contains(key)

  override def valuesIterator(key: UnsafeRow, family: String): Iterator[UnsafeRow] =
    multiValued("valuesIterator", readable("valuesIterator", key, family)).values(key)

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] = {
    val v = known("iterator", family)
    pairs(v, v.entries)
  }

  override def iteratorWithMultiValues(family: String): StateStoreIterator[UnsafeRowPair] = {
    val v = multiValued("iteratorWithMultiValues", known("iteratorWithMultiValues", family))
    allPairs(v, v.entries)
  }

  override def prefixScan(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] = {
    val v = known("prefixScan", family)
    require(v.codec.supportsPrefixScan, "Prefix scan requires setting prefix key!")
    pairs(v, v.prefixed(prefix))
  }

  override def prefixScanWithMultiValues(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] = {
    val v = multiValued("prefixScanWithMultiValues", known("prefixScanWithMultiValues", family))
    require(v.codec.supportsPrefixScan, "Prefix scan requires setting prefix key!")
    allPairs(v, v.prefixed(prefix))
  }

  override def rangeScan(
      start: Option[UnsafeRow],
      end: Option[UnsafeRow],
      family: String
  ): StateStoreIterator[UnsafeRowPair] = {
    val v = known("rangeScan", family)
    require(v.codec.supportsRangeScan, "Range scan requires an encoder that supports range scanning!")
    pairs(v, v.ranged(start, end))
  }

  override def rangeScanWithMultiValues(
      start: Option[UnsafeRow],
      end: Option[UnsafeRow],
      family: String
  ): StateStoreIterator[UnsafeRowPair] = {
    val v = multiValued("rangeScanWithMultiValues", known("rangeScanWithMultiValues", family))
    require(v.codec.supportsRangeScan, "Range scan requires an encoder that supports range scanning!")
    allPairs(v, v.ranged(start, end))
  }

  /** Entries of an ordered family from a prefix of the key on. Spark 4.3's reusable iterators seek with it. */
  def pairsFrom(prefix: UnsafeRow, family: String): Iterator[UnsafeRowPair] = {
    val v = known("reusableIterator", family)
    require(v.codec.supportsRangeScan, "A reusable iterator requires an encoder that supports range scanning!")
    pairs(v, v.from(prefix))
  }

  override def allColumnFamilyNames: Set[String] = views.keySet.toSet

  // ---- writing

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit = {
    val v = writable("put", key, family)
    require(value != null, "Cannot put a null value")
    v.put(key, value)
  }

  override def putList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit = {
    val v = multiValued("putList", writable("put", key, family))
    require(values != null && values.forall(_ != null), "Cannot put a null value")
    v.putList(key, values)
  }

  override def merge(key: UnsafeRow, value: UnsafeRow, family: String): Unit = {
    val v = multiValued("merge", writable("merge", key, family))
    require(value != null, "Cannot merge a null value")
    v.append(key, Array(value))
  }

  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit = {
    val v = multiValued("merge", writable("merge", key, family))
    require(values != null && values.forall(_ != null), "Cannot merge a null value")
    v.append(key, values)
  }

  override def remove(key: UnsafeRow, family: String): Unit = writable("remove", key, family).remove(key)

  override def deleteRange(begin: UnsafeRow, end: UnsafeRow, family: String): Unit = {
    val v = writable("deleteRange", begin, family)
    require(end != null, "End key cannot be null")
    require(
      v.codec.supportsDeleteRange,
      "deleteRange requires a RangeKeyScanStateEncoderSpec for ordered key encoding"
    )
    v.ranged(Some(begin), Some(end)).map(v.keyRow).foreach(v.remove)
  }

  override def createColFamilyIfAbsent(
      name: String,
      keySchema: StructType,
      valueSchema: StructType,
      spec: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean
  ): Unit = {
    families.verifyNew("create_col_family", name, isInternal)
    if (!views.contains(name)) {
      val v = view(families.family(name, keySchema, valueSchema, spec, useMultipleValuesPerKey, isInternal))
      v.hidesBelow = removed.contains(name)
      views(name) = v
      last = null
    }
  }

  override def removeColFamilyIfExists(name: String): Boolean = {
    families.verifyNew("remove_col_family", name, isInternal = false)
    verifyOpen("remove a column family")
    val existed = views.remove(name).isDefined ||
      (!removed.contains(name) && scope.shards.exists(holds(_, name)))
    if (existed) {
      removed += name
      last = null
    }
    existed
  }

  override def commit(): Long = {
    verify(state == Open, "Cannot commit after already committed or aborted")
    try {
      changesMemory.verifyComplete()
      val start = System.nanoTime()
      // As large as what the attempt has written, up to 64 MiB, so that it rarely has to grow.
      val maxBytes = views.valuesIterator.map(_.overlay.records.arena.capacityBytes).sum
      val changes = new ByteSink(math.max(1L << 10, math.min(maxBytes, 64L << 20)).toInt)
      val sections = writeChanges(changes)
      committedBytes = changes.size
      val external = views.valuesIterator.filterNot(_.isInternal).toSeq
      val keys = scope.shards.map(shard => external.iterator.map(_.sizeBelow(shard)).sum)
      val operations = scope.shards.map(shard => views.valuesIterator.map(_.operations(shard)).sum)
      scope.commit(changes, sections, keys, operations)
      overlayBytes = views.valuesIterator.map(_.overlay.memoryBytes).sum
      state = Committed
      // A task may still read what it has written, so its store is closed only when it ends.
      if (task.isEmpty) {
        changesMemory.release()
        scope.close()
      }
      commitNs = System.nanoTime() - start
      scope.countCommit(committedBytes.toLong, commitNs)
      version + 1
    } catch {
      case e: ByteSink.Full => throw QueryExecutionErrors.failedToCommitStateFileError(toString, tooManyChanges(e))
      case e: Throwable => throw QueryExecutionErrors.failedToCommitStateFileError(toString, e)
    }
  }

  private def tooManyChanges(e: ByteSink.Full) = new PenstockException(
    "PENSTOCK_CHANGES_TOO_LARGE",
    s"the changes of one task in one batch exceed ${FileFormat.MaxBytes} bytes (${scope.describe}). No state of the " +
      "batch is kept. Use more tasks (spark.penstock.tasks), or smaller batches (for example with " +
      "maxOffsetsPerTrigger)",
    e
  )

  override def abort(): Unit = {
    verify(state != Committed, "Cannot abort after already committed")
    state = Aborted
    changesMemory.release()
    if (task.isEmpty) scope.close()
  }

  override def release(): Unit = if (state == Open) abort()

  override def hasCommitted: Boolean = state == Committed

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo =
    StateStoreCheckpointInfo(id.partitionId, version + 1, None, None)

  override def metrics: StateStoreMetrics = {
    val (internal, external) = views.valuesIterator.toSeq.partition(_.isInternal)
    val memory = scope.shards.iterator.map(s => below(s).memoryBytes).sum
    StateStoreMetrics(
      external.map(_.size).sum,
      memory + overlayBytes,
      Metrics.read(
        MetricOutput.Operator,
        StoreActivity(internal.map(_.size).sum, timings, commitNs, committedBytes.toLong, overlayBytes)
      ).map { case (metric, value) => StoreMetrics.of(metric) -> value }.toMap
    )
  }

  override def toString: String = s"ShardedStateStore[${scope.describe}]"

  // ---- internals

  /** One change set per changed shard, shards ascending. */
  private def writeChanges(out: ByteSink): Seq[Section] = {
    val byShard = views.valuesIterator.toSeq.map(new ChangesByShard(_))
    val writer = new ChangeSet.Writer(out)
    val sections = mutable.ArrayBuffer[Section]()
    scope.shards.foreach { shard =>
      removed.foreach(name => if (below(shard).familyOrNull(name) != null) writer.removeFamily(name))
      // Moves come before changes: a key may have moved and changed in the same batch.
      moves.get(shard).foreach {
        _.writeUnknown(writer, below(shard), f => views.contains(f) || removed.contains(f), scope.describe)
      }
      views.valuesIterator.map(_.movedOf(shard)).filter(_ != null).foreach(_.writeTo(writer))
      byShard.foreach(_.writeTo(shard, writer))
      if (!writer.isEmpty) {
        val at = out.size
        val length = writer.finish()
        sections +=
          Section(StoreKey(id.operatorId, id.storeName), shard, at, length, FileFormat.crc(out.array, at, length))
      }
    }
    sections.toSeq
  }

  private def view(f: StoreFamilies.Family): FamilyView = {
    def prefixedMain = views.get(f.name.stripPrefix("$ttl_")).exists(_.codec.supportsPrefixScan)
    val extractor = scope.extractor(
      if (families.useColumnFamilies) f.name else id.storeName,
      f.keySchema,
      f.spec,
      prefixedMain
    )
    new FamilyView(
      f.name,
      f.codec,
      extractor,
      f.multiValued,
      f.isInternal,
      scope.shards,
      below,
      moves.getOrElse(_, ShardMoves.None),
      scope.describe,
      inUse,
      changesMemory.grew(_)
    )
  }

  /** Whether a shard has a family, or keys of the family move into the shard. */
  private def holds(shard: Int, name: String): Boolean =
    (below(shard) +: moves.get(shard).toSeq.flatMap(_.gained.map(_.from))).exists(_.familyOrNull(name) != null)

  private def readable(operation: String, key: Any, family: String): FamilyView = {
    verify(key != null, "Key cannot be null")
    known(operation, family)
  }

  private def writable(operation: String, key: UnsafeRow, family: String): FamilyView = {
    verifyOpen(operation)
    verify(key != null, "Key cannot be null")
    known(operation, family)
  }

  private def verifyOpen(operation: String): Unit =
    verify(state == Open && !readOnly, s"Cannot $operation after already committed or aborted")

  private def known(operation: String, name: String): FamilyView = {
    verify(state != Aborted, s"Cannot $operation after already committed or aborted")
    val v = last
    if (v != null && (v.name eq name)) v
    else {
      families.verifyKnown(operation, name, views.contains)
      last = views(name)
      last
    }
  }

  private def multiValued(operation: String, v: FamilyView): FamilyView = {
    require(
      v.multiValued,
      s"$operation requires a column family with multiple values for a single key; ${v.name} has one value per key"
    )
    v
  }

  private def pairs(v: FamilyView, entries: Iterator[Entry]): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair
    new StateStoreIterator(entries.map(e => pair.withRows(v.keyRow(e), v.valueRow(e))), () => ())
  }

  private def allPairs(v: FamilyView, entries: Iterator[Entry]): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair
    new StateStoreIterator(
      entries.flatMap { e =>
        val key = v.keyRow(e)
        v.valueRows(e).map(pair.withRows(key, _))
      },
      () => ()
    )
  }

  private def verify(condition: Boolean, message: => String): Unit =
    if (!condition) throw new IllegalStateException(message)
}

object ShardedStateStore {
  sealed private trait State
  private case object Open extends State
  private case object Committed extends State
  private case object Aborted extends State

  /** The attempt's changes of one family, grouped by shard. */
  final private class ChangesByShard(view: FamilyView) {
    private val overlay = view.overlay
    private val grouped = overlay.byShard
    private val scratch = new KeyBytes

    def writeTo(shard: Int, out: ChangeSet.Writer): Unit = {
      var declared = false
      def declare(): Unit = if (!declared) {
        out.family(view.name, view.traits)
        declared = true
      }
      val t = overlay.records
      var i = grouped.starts(shard)
      while (i < grouped.starts(shard + 1)) {
        val ref = grouped.refs(i)
        val page = t.page(ref)
        overlay.changeOf(ref) match {
          case Overlay.Removed =>
            if (overlay.existedBelow(ref)) {
              declare()
              out.remove(page, t.keyAt(ref), t.keyLength(ref))
            }
          case Overlay.Put =>
            declare()
            out.put(page, t.keyAt(ref), t.keyLength(ref), page, t.valueAt(ref), t.valueLength(ref))
          case _ => // Appended
            declare()
            writeAppended(ref, out)
        }
        i += 1
      }
    }

    /** Writes only the appended values if the values below stay; else all values of the key. */
    private def writeAppended(ref: Int, out: ChangeSet.Writer): Unit = {
      val t = overlay.records
      val chain = overlay.chain(ref)
      val values = new ByteSink(256)
      chain.parts.foreach(p => values.putBytes(t.page(p), t.valueAt(p), t.valueLength(p)))
      t.keyOf(ref, scratch)
      val at = org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET.toLong
      if (chain.replacesBelow) out.put(scratch.base, scratch.offset, scratch.length, values.array, at, values.size)
      else out.append(scratch.base, scratch.offset, scratch.length, values.array, at, values.size)
    }
  }
}
