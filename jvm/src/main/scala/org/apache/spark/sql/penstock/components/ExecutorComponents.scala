package org.apache.spark.sql.penstock.components

import org.apache.spark.sql.penstock.commit.{CommitClient, TaskCommits}
import org.apache.spark.sql.penstock.executors.ExecutorRegistered
import org.apache.spark.sql.penstock.lease.TaskLeases
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.penstock.state._
import org.apache.spark.sql.penstock.telemetry.TaskMeter

import io.penstock.conf.Settings
import io.penstock.context.{ExecutorContext, ProcessContext}
import io.penstock.sidecars.transfer.{ExecutorTransfer, ReceiveBuffers, TransferSettings}
import io.penstock.state.memory.MemoryBound

/** What an executor's context consists of. */
object ExecutorComponents {
  private val SweepMs = 30000L

  /**
   * Starts the executor's context. Components are created before those that use them, and closed after them.
   *
   * @param conf
   *   settings of the application
   * @param executor
   *   id of the executor
   */
  def start(conf: Map[String, String], executor: String): ProcessContext = {
    val context = ExecutorContext.start()
    Seq(ManifestCache, ShardHash, ReceiveBuffers, TaskLeases, TaskMeter, TaskCommits).foreach(context.own(_))
    val driver = context.own(CommitClient, new CommitClient)
    val stores = context.own(ShardStores, new ShardStores)
    val memory = context.own(StateMemory, new StateMemory(stores, limitOf(conf, executor), driver.live))
    val metrics = context.own(ExecutorMetrics, new ExecutorMetrics(stores, memory.bound))
    val snapshots = context.own(Snapshots, new Snapshots(driver.tell, metrics))
    context.own(new ShardSweeper(stores, SweepMs, driver.live(_).keySet, snapshots.forget))
    context.own(ExecutorTransfer, new ExecutorTransfer)
    context
  }

  /**
   * Adds what sends shards to other executors and takes theirs. Does not wait for the sidecar.
   *
   * @param command
   *   the sidecar's program and its arguments
   * @param handOverLimitMs
   *   time for handing shards over when the executor ends
   * @return
   *   the message that makes this executor known to the driver
   */
  def transfer(
      context: ProcessContext,
      command: Seq[String],
      settings: TransferSettings,
      handOverLimitMs: Int
  ): ExecutorRegistered = {
    val (stores, sidecar) = (ShardStores.current, ExecutorTransfer.current)
    val receiver = new ShardReceiver(stores, StateMemory.current.bound, sidecar)
    sidecar.start(command, settings, new ShardSender(stores, receiver))
    val endpoint = context.own(new ExecutorEndpoint(receiver))
    context.own(new LeavingExecutor(handOverLimitMs, sidecar, CommitClient.current))
    endpoint.registration
  }

  private def limitOf(conf: Map[String, String], executor: String): MemoryBound.Limit = {
    val setting = Settings.StateMaxBytes
    val value = Settings.application(setting, conf)
    MemoryBound.Limit(value.bytes(Runtime.getRuntime.maxMemory), setting.kind.write(value), s"executor $executor")
  }
}
