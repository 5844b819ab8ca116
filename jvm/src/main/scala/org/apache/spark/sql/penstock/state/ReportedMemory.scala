package org.apache.spark.sql.penstock.state

import org.apache.spark.SparkEnv
import org.apache.spark.memory._

import io.penstock.state.memory.MemoryAccount

/**
 * Reports to Spark how much heap the state holds. Spark asks every `spark.memory.unmanagedMemoryPollingInterval` (0 by
 * default, which means never), and reduces the memory for execution and storage by that amount.
 *
 * @param memory
 *   counts the bytes
 */
final class ReportedMemory(memory: MemoryAccount) extends UnmanagedMemoryConsumer {
  override val unmanagedMemoryConsumerId: UnmanagedMemoryConsumerId = UnmanagedMemoryConsumerId("Penstock", "state")

  override def memoryMode: MemoryMode = MemoryMode.ON_HEAP

  override def getMemBytesUsed: Long = memory.bytes

  /** Registers this object with Spark. Idempotent. */
  def register(): Unit = if (SparkEnv.get != null) UnifiedMemoryManager.registerUnmanagedMemoryConsumer(this)

  /** Called when no state is left in this executor. */
  def unregister(): Unit = UnifiedMemoryManager.unregisterUnmanagedMemoryConsumer(this)
}
