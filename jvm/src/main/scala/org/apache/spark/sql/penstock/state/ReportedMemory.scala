package org.apache.spark.sql.penstock.state

import org.apache.spark.SparkEnv
import org.apache.spark.memory._

/**
 * Tells Spark how much heap state holds. Spark asks every `spark.memory.unmanagedMemoryPollingInterval`, which is 0, that
 * is never, where it is not set, and then leaves that much less to execution and storage.
 */
object ReportedMemory extends UnmanagedMemoryConsumer {
  override val unmanagedMemoryConsumerId: UnmanagedMemoryConsumerId = UnmanagedMemoryConsumerId("Penstock", "state")

  override def memoryMode: MemoryMode = MemoryMode.ON_HEAP

  override def getMemBytesUsed: Long = ShardStores.memory.bytes

  /** Idempotent. */
  def register(): Unit = if (SparkEnv.get != null) UnifiedMemoryManager.registerUnmanagedMemoryConsumer(this)

  /** There is no state in this JVM. */
  def unregister(): Unit = UnifiedMemoryManager.unregisterUnmanagedMemoryConsumer(this)
}
