package org.apache.spark.sql.penstock.commit

import java.util.UUID

import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.state.format.{Container, Section, StoreKey}
import io.penstock.telemetry.StateLoad

/** What tasks and executors tell the driver about state. */
sealed trait CommitMessage extends Serializable {
  def runId: UUID
}

/**
 * The changes of one store that a task attempt commits.
 *
 * @param shards
 *   all shards of the task's lease, changed or not
 * @param state
 *   of each of `shards`: its size before the changes, and what the attempt did with it
 * @param loadNs
 *   time in which the attempt brought what was not in its executor's memory
 * @param brought
 *   how many shards that were, by transport, or as [[io.penstock.telemetry.MovedState.Checkpoint]]
 * @param sections
 *   of the changed ones; offsets from the start of the attempt's payload
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
 * One task attempt has committed its stores.
 *
 * @param executor
 *   where the shards are in memory now, as a task location
 * @param sidecar
 *   addresses of that executor's sidecar, by transport; empty where it has none
 * @param lineage
 *   uuid of this commit
 * @param payload
 *   the sections themselves where the driver is to write them with the manifest, else null
 * @param payloadAt
 *   where the payload starts in the attempt's changelog file; 0 with an inline payload
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
 * An executor that ends has handed shards to another.
 *
 * @param from
 *   the executor that ends, as a task location
 * @param to
 *   the one that has them now
 */
final case class ShardsHandedOver(runId: UUID, region: Long, from: String, to: String, shards: Array[Int])
    extends CommitMessage

/**
 * Shards that an executor which ends is to hand to another.
 *
 * @param to
 *   the other
 * @param offer
 *   what it is to be told, encoded
 */
final case class HandOver(runId: UUID, region: Long, to: Holder, offer: Array[Byte])

/**
 * A file of snapshots is durable.
 *
 * @param entries
 *   version, lineage and section of each shard in it; offsets from the start of the payload
 */
final case class SnapshotsWritten(
    runId: UUID,
    container: Container.Snapshots,
    payloadAt: Long,
    entries: Seq[SnapshotEntry]
) extends CommitMessage

final case class SnapshotEntry(version: Long, lineage: UUID, section: Section) extends Serializable
