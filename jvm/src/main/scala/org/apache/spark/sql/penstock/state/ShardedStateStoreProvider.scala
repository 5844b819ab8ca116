package org.apache.spark.sql.penstock.state

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.shims.VersionedStateStoreProvider
import org.apache.spark.sql.types.StructType

/**
 * Penstock's state store provider. An instance holds no state: it opens views of the shards that the JVM holds.
 *
 * It is a RocksDB provider by type only, because Spark offers the newer join state formats only to such classes.
 * Nothing of that class is used.
 */
class ShardedStateStoreProvider extends VersionedStateStoreProvider {
  private var id: StateStoreId = _
  private var conf: StateStoreConf = _
  private var hadoopConf: Configuration = _
  private var makeFamilies: () => StoreFamilies = _

  /**
   * Shared by all stores of a reader: Spark's state reader creates a column family in one store and reads it in
   * another.
   */
  private lazy val familiesOfReader = makeFamilies()

  override def init(
      stateStoreId: StateStoreId,
      keySchema: StructType,
      valueSchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean,
      storeConfs: StateStoreConf,
      hadoopConf: Configuration,
      useMultipleValuesPerKey: Boolean,
      stateSchemaProvider: Option[StateSchemaProvider]
  ): Unit = {
    if (useMultipleValuesPerKey) {
      require(useColumnFamilies, "Multiple values per key support requires column families to be enabled.")
    }
    this.id = stateStoreId
    this.conf = storeConfs
    this.hadoopConf = hadoopConf
    makeFamilies = () =>
      new StoreFamilies(
        keySchema,
        valueSchema,
        keyStateEncoderSpec,
        useColumnFamilies,
        useMultipleValuesPerKey,
        storeConfs.stateStoreEncodingFormat,
        stateSchemaProvider
      )
  }

  override def stateStoreId: StateStoreId = id

  override def close(): Unit = ()

  override def doMaintenance(): Unit = ()

  override def supportedCustomMetrics: Seq[StateStoreCustomMetric] = StoreMetrics.All

  override def supportedInstanceMetrics: Seq[StateStoreInstanceMetric] = Nil

  override def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean
  ): StateStore = open(version, readOnly = false)

  override def getReadStore(version: Long, stateStoreCkptId: Option[String]): StateStore =
    open(version, readOnly = true)

  /**
   * Uses the restore operator's store as that of the save operator, if it is the same store: below a union, the thread
   * may offer the store of another branch.
   */
  override def upgradeReadStoreToWriteStore(
      readStore: ReadStateStore,
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean
  ): StateStore = readStore match {
    case s: ShardedStateStore if s.id == id && s.version == version =>
      s.makeWritable()
      s
    case _ => open(version, readOnly = false)
  }

  override def replayStateFromSnapshot(
      snapshotVersion: Long,
      endVersion: Long,
      readOnly: Boolean,
      snapshotVersionStateStoreCkptId: Option[String],
      endVersionStateStoreCkptId: Option[String]
  ): StateStore = {
    if (snapshotVersion < 1) throw QueryExecutionErrors.unexpectedStateStoreVersion(snapshotVersion)
    if (endVersion < snapshotVersion) throw QueryExecutionErrors.unexpectedStateStoreVersion(endVersion)
    val seen = new ReadOnlyScope(id, endVersion, Some(snapshotVersion), hadoopConf)
    new ShardedStateStore(id, endVersion, seen, familiesOfReader, conf, readOnly)
  }

  override def getStateStoreChangeDataReader(
      startVersion: Long,
      endVersion: Long,
      colFamilyNameOpt: Option[String],
      endVersionStateStoreCkptId: Option[String]
  ): StateStoreChangeDataReader = {
    val name = colFamilyNameOpt.getOrElse(StateStore.DEFAULT_COL_FAMILY_NAME)
    val family = familiesOfReader.all
      .find(_.name == name)
      .getOrElse(throw StateStoreErrors.unsupportedOperationOnMissingColumnFamily("read the changes of", name))
    val history = ReadOnlyScope.history(id, endVersion, hadoopConf)
    new ShardChangeReader(history, family, id, startVersion, endVersion, conf, hadoopConf)
  }

  /** The scope of a store that is opened now. */
  protected def scope(version: Long): StoreScope =
    StoreScope.current(id, version, runId, hadoopConf, conf.minDeltasForSnapshot)

  private def runId: Option[UUID] = Option(hadoopConf.get(StreamExecution.RUN_ID_KEY)).map(UUID.fromString)

  private def open(version: Long, readOnly: Boolean): ShardedStateStore = {
    if (version < 0) throw QueryExecutionErrors.unexpectedStateStoreVersion(version)
    val seen = scope(version)
    val families = seen match {
      case _: ReadOnlyScope => familiesOfReader
      case _ => makeFamilies()
    }
    new ShardedStateStore(id, version, seen, families, conf, readOnly)
  }
}
