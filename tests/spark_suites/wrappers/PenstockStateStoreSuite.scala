package org.apache.spark.sql.execution.streaming.state

import java.util.UUID

import scala.util.{Random, Try}

import io.penstock.errors.PenstockException
import org.apache.hadoop.conf.Configuration
import org.scalatest.BeforeAndAfter

import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.state.StandaloneProvider
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.StructType

/** Throws Spark's error for a version that does not exist, because Spark's suite asserts the class of that error. */
class SparkErrorsProvider extends StandaloneProvider {
  override def getStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore =
    try super.getStore(version, stateStoreCkptId, forceSnapshotOnCommit, loadEmpty)
    catch {
      case e: PenstockException if e.errorClass == "PENSTOCK_STATE_MISSING" =>
        throw QueryExecutionErrors.failedToReadStreamingStateFileError(stateStoreId.storeCheckpointLocation(), e)
    }
}

/** Runs [[StateStoreSuiteBase]], Spark's contract of a state store provider, for Penstock's store without a query. */
class PenstockStateStoreSuite
    extends StateStoreSuiteBase[StateStoreProvider]
    with SharedSparkSession
    with BeforeAndAfter {
  import StateStoreTestsHelper._

  before {
    StateStore.stop()
    // A query creates the coordinator on first use, but providers that report to it need it earlier.
    spark.streams.stateStoreCoordinator
  }

  after {
    StateStore.stop()
  }

  // Both parents define this method.
  override protected def testQuietly(name: String)(f: => Unit): Unit =
    super[StateStoreSuiteBase].testQuietly(name)(f)

  private def make(
      id: StateStoreId = StateStoreId(newDir(), Random.nextInt(Int.MaxValue), 0),
      key: StructType = keySchema,
      spec: KeyStateEncoderSpec = NoPrefixKeyStateEncoderSpec(keySchema),
      families: Boolean = false,
      sqlConf: SQLConf = SQLConf.get,
      hadoopConf: Configuration = new Configuration): StateStoreProvider = {
    hadoopConf.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID().toString)
    val provider = newStoreProviderNoInit()
    provider.init(
      id,
      key,
      valueSchema,
      spec,
      families,
      new StateStoreConf(sqlConf),
      hadoopConf,
      useMultipleValuesPerKey = false,
      stateSchemaProvider = Some(new TestStateSchemaProvider))
    provider
  }

  override def newStoreProvider(): StateStoreProvider = make()

  override def newStoreProvider(storeId: StateStoreId): StateStoreProvider = make(storeId)

  override def newStoreProvider(storeId: StateStoreId, useColumnFamilies: Boolean): StateStoreProvider =
    make(storeId, families = useColumnFamilies)

  override def newStoreProvider(storeId: StateStoreId, conf: Configuration): StateStoreProvider =
    make(storeId, hadoopConf = conf)

  override def newStoreProvider(minDeltasForSnapshot: Int, numOfVersToRetainInMemory: Int): StateStoreProvider =
    make(sqlConf = getDefaultSQLConf(minDeltasForSnapshot, numOfVersToRetainInMemory))

  override def newStoreProvider(
      keySchema: StructType,
      keyStateEncoderSpec: KeyStateEncoderSpec,
      useColumnFamilies: Boolean): StateStoreProvider =
    make(key = keySchema, spec = keyStateEncoderSpec, families = useColumnFamilies)

  override def newStoreProvider(useColumnFamilies: Boolean): StateStoreProvider = make(families = useColumnFamilies)

  override def newStoreProviderWithClonedConf(storeId: StateStoreId): StateStoreProvider =
    make(storeId, sqlConf = cloneSQLConf())

  override def newStoreProviderNoInit(): StateStoreProvider = new SparkErrorsProvider

  /** Finds the newest version by trial, because the contract has no call for it. */
  override def getLatestData(provider: StateStoreProvider, useColumnFamilies: Boolean): Set[((String, Int), Int)] = {
    val reader = make(provider.stateStoreId, families = useColumnFamilies)
    val newest =
      try (64 to 1 by -1).find(version => Try(reader.getStore(version).abort()).isSuccess).getOrElse(0)
      finally reader.close()
    getData(provider, newest, useColumnFamilies)
  }

  override def getData(
      provider: StateStoreProvider,
      version: Int,
      useColumnFamilies: Boolean): Set[((String, Int), Int)] =
    tryWithProviderResource(make(provider.stateStoreId, families = useColumnFamilies)) { reader =>
      val store = reader.getStore(version)
      try store.iterator().map(rowPairToDataPair).toSet
      finally if (!store.hasCommitted) store.abort()
    }

  override def getDefaultSQLConf(minDeltasForSnapshot: Int, numOfVersToRetainInMemory: Int): SQLConf = {
    val conf = SQLConf.get.clone()
    conf.setConf(SQLConf.STATE_STORE_MIN_DELTAS_FOR_SNAPSHOT, minDeltasForSnapshot)
    conf.setConf(SQLConf.MAX_BATCHES_TO_RETAIN_IN_MEMORY, numOfVersToRetainInMemory)
    conf.setConf(SQLConf.MIN_BATCHES_TO_RETAIN, 2)
    conf
  }
}
