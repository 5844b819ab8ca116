package org.apache.spark.sql.penstock.commit

import java.util.UUID

import org.apache.spark.sql.penstock.lease.{Holder, TaskAttempt}

import io.penstock.state.format.{Container, Section, StoreKey}
import io.penstock.telemetry.StateLoad

/** A message about state from a task or an executor to the driver. */
sealed trait CommitMessage extends Serializable {
  def runId: UUID
}

/**
 * The changes of one store that a task attempt commits.
 *
 * @param shards
 *   all shards of the task's lease, changed or not
 * @param state
 *   load of each of `shards`: its size before the changes, and the operations of the attempt on it
 * @param loadNs
 *   time that the attempt spent on bringing shards that were not in its executor's memory
 * @param brought
 *   number of these shards by transport, or by [[io.penstock.telemetry.MovedState.Checkpoint]] or
 *   [[io.penstock.telemetry.MovedState.Changes]]
 * @param sections
 *   sections of the changed shards; offsets are relative to the start of the attempt's payload
 */
final case class StoreCommit(
    store: StoreKey,
    shards: Array[Int],
    state: StateLoad,
    loadNs: Long,
    brought: Map[String, Int],
    sections: Array[Section]
) extends Serializable

/**
 * A task attempt has committed its stores.
 *
 * @param executor
 *   task location of the executor that holds the shards in memory now
 * @param sidecar
 *   addresses of that executor's transfer sidecar, by transport; empty if it has none
 * @param lineage
 *   UUID of this commit
 * @param payload
 *   bytes of the sections, if the driver is to write them with the manifest; else null
 * @param payloadAt
 *   offset of the payload in the attempt's changelog file; 0 with an inline payload
 */
final case class TaskCommitted(
    runId: UUID,
    batchId: Long,
    attempt: TaskAttempt,
    executor: String,
    sidecar: Map[String, String],
    lineage: UUID,
    payload: Array[Byte],
    payloadAt: Long,
    stores: Seq[StoreCommit]
) extends CommitMessage

/**
 * A leaving executor has handed shards over to another executor.
 *
 * @param from
 *   task location of the leaving executor
 * @param to
 *   task location of the executor that holds the shards now
 */
final case class ShardsHandedOver(runId: UUID, region: Long, from: String, to: String, shards: Array[Int])
    extends CommitMessage

/**
 * Shards that a leaving executor is to hand over to another executor.
 *
 * @param to
 *   executor that receives the shards
 * @param offer
 *   encoded [[io.penstock.state.format.ShardOffer]] for that executor
 */
final case class HandOver(runId: UUID, region: Long, to: Holder, offer: Array[Byte])

/**
 * A snapshot file is durable.
 *
 * @param payloadAt
 *   offset of the payload in the file
 * @param entries
 *   version, lineage and section of each shard in the file; offsets are relative to the start of the payload
 */
final case class SnapshotsWritten(
    runId: UUID,
    container: Container.Snapshots,
    payloadAt: Long,
    entries: Seq[SnapshotEntry]
) extends CommitMessage

final case class SnapshotEntry(version: Long, lineage: UUID, section: Section) extends Serializable
