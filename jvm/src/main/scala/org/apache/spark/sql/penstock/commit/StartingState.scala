package org.apache.spark.sql.penstock.commit

import java.util.UUID

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.lease.{BatchSpec, RegionSpec}
import org.apache.spark.sql.penstock.storage.{QueryDescription, StateDirectory}

import io.penstock.errors.PenstockException
import io.penstock.state.format._

/**
 * The state in a checkpoint from which the first batch of a query run starts, and the checks that it passes before.
 *
 * @param shardCount
 *   S, the number of base shards
 * @param wantedShards
 *   number of shards that the application asks for; None if it does not
 */
final private class StartingState(
    runId: UUID,
    directory: StateDirectory,
    shardCount: Int,
    wantedShards: Option[Int]
) extends Logging {
  private val stateRoot = directory.stateRoot

  /**
   * Newest generation of each batch's manifest that earlier runs have written. The folder is listed only once, because
   * listing it in every batch would be slow on a remote file system.
   */
  private lazy val earlier: Map[Long, Long] = directory.newestGenerations()

  /** Newest generation of a batch's manifest that an earlier run has written; -1 if there is none. */
  def generationOf(batchId: Long): Long = earlier.getOrElse(batchId, -1L)

  /**
   * State that a batch starts from, of which this run has not written the batch before.
   *
   * @throws io.penstock.errors.PenstockException
   *   if the checkpoint has no such state, or belongs to another query or another number of shards
   */
  def before(batchId: Long): Manifest = {
    describe()
    if (batchId == 0L) Manifest(-1L, -1L, -1L, 0L, runId, 0L, shardCount, Map.empty) else read(batchId)
  }

  private def read(batchId: Long): Manifest = {
    val previous = batchId - 1
    val generation = earlier.getOrElse(
      previous,
      throw new PenstockException(
        "PENSTOCK_STATE_MISSING",
        s"batch $batchId must start from the state of batch $previous, but $stateRoot has no manifest of that " +
          s"batch. ${remedy(previous)}"
      )
    )
    val m = directory.readManifest(previous, generation)
    if (m.shardCount != shardCount) {
      throw FileFormat.corrupt(
        directory.name(Container.InManifest(previous, generation).path),
        FileFormat.HeaderBytes,
        s"it has ${m.shardCount} shards, but the query has $shardCount"
      )
    }
    m.copy(retainedFrom = math.max(m.retainedFrom, retainedSince(batchId)))
  }

  /**
   * Checks that a batch's base state has the stores of a region.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_MISSING
   */
  def verifyStores(spec: BatchSpec, region: RegionSpec, base: Manifest): Unit =
    if (spec.batchId > 0) region.stores.foreach { key =>
      val found = base.stores.get(key)
      if (!found.exists(_.size == (if (region.single) 1 else base.layout(key).shards))) {
        val present = found.fold("no store")(shards => s"${shards.size} of $shardCount shards in store")
        throw new PenstockException(
          "PENSTOCK_STATE_MISSING",
          s"the state of batch ${spec.batchId - 1} in $stateRoot has $present ${key.storeName} of operator " +
            s"${key.operatorId}. The query has changed since the checkpoint was written. Start the query that wrote " +
            "it, or use a new checkpoint location"
        )
      }
    }

  private def describe(): Unit = directory.readDescription() match {
    case Some(d) =>
      verifyQuery(d)
      (wantedShards.toSeq :+ shardCount).find(_ != d.shardCount).foreach { wanted =>
        throw new PenstockException(
          "PENSTOCK_SHARDS_CHANGED",
          s"the state in $stateRoot has ${d.shardCount} shards, but $wanted are requested. The number of shards is " +
            s"fixed by a query's first batch. Set spark.penstock.shards=${d.shardCount}, or use a new checkpoint " +
            "location"
        )
      }
    case None => directory.writeDescription(QueryDescription(shardCount, "penstock", directory.queryId))
  }

  private def verifyQuery(d: QueryDescription): Unit = {
    val id = directory.queryId
    if (d.queryId.nonEmpty && id.nonEmpty && d.queryId != id) {
      throw new PenstockException(
        "PENSTOCK_OTHER_QUERY",
        s"the state in $stateRoot was written by query ${d.queryId}, but the checkpoint that contains it belongs to " +
          s"query $id: two checkpoints have been mixed. Nothing was changed. Move the state back to the checkpoint " +
          "that it belongs to, or restore this checkpoint"
      )
    }
  }

  /**
   * Oldest batch that is retained according to manifests of this batch and later ones, which an earlier run has
   * written. That run may have retained less than this one does, and has deleted older files.
   */
  private def retainedSince(batchId: Long): Long = earlier.filter(_._1 >= batchId).map { case (later, generation) =>
    try directory.readManifest(later, generation).retainedFrom
    catch {
      case e: PenstockException =>
        logInfo(
          s"Manifest $later.$generation of $stateRoot cannot be read and is ignored, because its batch runs again: " +
            e.getMessage
        )
        0L
    }
  }.maxOption.getOrElse(0L)

  /** What to do if the manifest of a batch is missing. */
  private def remedy(batchId: Long): String = earlier.keys.filter(_ < batchId).maxOption match {
    case Some(newest) =>
      s"The newest state is that of batch $newest: the checkpoint was copied while it was written, or files are " +
        s"missing. Restore manifests/$batchId.* and the files that it names, or delete the entries of offsets and " +
        s"commits later than $newest, so that the later batches are computed again (a sink may receive their rows a " +
        "second time)"
    case None => "There is no older state. Restore the checkpoint, or use a new checkpoint location"
  }
}
