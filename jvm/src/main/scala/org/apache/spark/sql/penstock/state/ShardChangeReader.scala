package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._

import io.penstock.state.engine.FamilyState
import io.penstock.state.format.{ChangeSink, FamilyChangeSink, FamilyTraits}

/**
 * The changes of one shard and column family, version by version, which Spark's state reader shows as its change feed.
 * If a batch changed a key several times, there is one change. Appended values are returned one by one. For a list that
 * was written as a whole, the first value is returned as an update and the others as appended to it.
 */
final class ShardChangeReader(
    history: ShardHistory,
    family: StoreFamilies.Family,
    id: StateStoreId,
    fromVersion: Long,
    toVersion: Long,
    conf: StateStoreConf,
    hadoopConf: Configuration
) extends StateStoreChangeDataReader(
      id,
      CheckpointFileManager.create(id.storeCheckpointLocation(), hadoopConf),
      id.storeCheckpointLocation(),
      fromVersion,
      toVersion,
      // Compression codec of Spark's own changelog files, which do not exist here.
      null,
      conf
    ) {
  import ShardChangeReader._

  private var version = fromVersion - 1
  private var pending: Iterator[Change] = Iterator.empty

  override protected val changelogSuffix: String = ""

  override protected def getNext(): Change = {
    while (!pending.hasNext && version < toVersion) {
      version += 1
      val decoded = new Decoded(family, version - 1)
      history.changes(version, decoded)
      pending = decoded.changes.iterator
    }
    if (pending.hasNext) pending.next()
    else {
      finished = true
      null
    }
  }
}

object ShardChangeReader {

  /** Kind, key, value (null if the key was removed) and batch. */
  type Change = (RecordType.Value, UnsafeRow, UnsafeRow, Long)

  /** Collects the changes of one family. */
  final private class Decoded(family: StoreFamilies.Family, batchId: Long) extends ChangeSink with FamilyChangeSink {
    val changes = mutable.ArrayBuffer[Change]()

    override def removeFamily(name: String): Unit = ()

    private val traits = FamilyTraits(family.codec.ordered, family.multiValued)

    override def family(name: String, traits: FamilyTraits, moved: Boolean): FamilyChangeSink =
      if (name != family.name) NoChanges
      else if (traits == this.traits) this
      else null

    override def put(key: AnyRef, keyAt: Long, keyLength: Int, value: AnyRef, valueAt: Long, valueLength: Int): Unit =
      if (family.multiValued) values(RecordType.PUT_RECORD, key, keyAt, keyLength, value, valueAt, valueLength)
      else add(RecordType.PUT_RECORD, keyRow(key, keyAt, keyLength), valueRow(value, valueAt, valueLength))

    override def append(
        key: AnyRef,
        keyAt: Long,
        keyLength: Int,
        value: AnyRef,
        valueAt: Long,
        valueLength: Int
    ): Unit =
      values(RecordType.MERGE_RECORD, key, keyAt, keyLength, value, valueAt, valueLength)

    override def remove(key: AnyRef, keyAt: Long, keyLength: Int): Unit =
      add(RecordType.DELETE_RECORD, keyRow(key, keyAt, keyLength), null)

    private def values(
        first: RecordType.Value,
        key: AnyRef,
        keyAt: Long,
        keyLength: Int,
        value: AnyRef,
        valueAt: Long,
        valueLength: Int
    ): Unit = {
      val row = keyRow(key, keyAt, keyLength)
      val all = new FamilyState.Values(value, valueAt, valueLength)
      var kind = first
      while (all.hasNext) {
        val length = all.next()
        add(kind, row, valueRow(value, all.valueAt(length), length))
        kind = RecordType.MERGE_RECORD
      }
    }

    private def add(kind: RecordType.Value, key: UnsafeRow, value: UnsafeRow): Unit =
      changes += ((kind, key, value, batchId))

    private def keyRow(page: AnyRef, at: Long, length: Int): UnsafeRow =
      family.codec.keyRow(bytes(page), at, length).copy()

    private def valueRow(page: AnyRef, at: Long, length: Int): UnsafeRow =
      family.codec.valueRow(bytes(page), at, length).copy()

    private def bytes(page: AnyRef): Array[Byte] = page.asInstanceOf[Array[Byte]]
  }
}
