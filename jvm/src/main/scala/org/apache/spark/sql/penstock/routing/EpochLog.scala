package org.apache.spark.sql.penstock.routing

import scala.collection.immutable.SortedMap

import org.apache.spark.sql.penstock.state.StateDirectory

import io.penstock.routing.Epoch
import io.penstock.state.format.FileFormat

/**
 * The epochs of a query, in its checkpoint: one file each, named by its number, written before its first batch and only
 * where it differs from the epoch in force. Epochs that no retained batch can use are deleted, so their number does not
 * grow with the query's age. One writer per query; not thread safe. Docs: PROTOCOL.md, "Epochs".
 *
 * @param retain
 *   batches that the query can be rewound by (`spark.sql.streaming.minBatchesToRetain`)
 */
final class EpochLog(directory: StateDirectory, retain: Int) {
  private var epochs: Vector[Epoch] = load()

  /** Epochs on record, oldest first. */
  def all: Seq[Epoch] = epochs

  /** The epoch that is in force at a batch, if one is on record: the newest of those that have begun. */
  def inForce(batch: Long): Option[Epoch] = epochs.findLast(_.firstBatch <= batch)

  /** Whether a batch is not younger than the newest epoch's first, so that its epoch is settled. */
  def settled(batch: Long): Boolean = epochs.lastOption.exists(_.firstBatch >= batch)

  /**
   * Makes an epoch with this content the one in force from `batch` on; durable when this returns.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CONCURRENT_RUN where another run of the query has written it
   */
  def append(
      batch: Long,
      shards: Int,
      tasks: SortedMap[Long, Int],
      places: Map[Long, Vector[Option[Int]]] = Map.empty,
      perCore: Set[Long] = Set.empty
  ): Epoch = {
    val epoch = Epoch(epochs.lastOption.fold(0L)(_.number + 1), batch, shards, tasks, places, perCore)
    directory.write(EpochLog.path(epoch.number), FileFormat.Kind.Epoch, Epoch.encode(epoch), Array.emptyByteArray, 0)
    epochs :+= epoch
    epoch
  }

  /** Deletes what no batch from `batch - retain` on uses. */
  def clean(batch: Long): Unit = {
    val (dead, live) = epochs.splitAt(epochs.lastIndexWhere(_.firstBatch <= batch - retain))
    dead.foreach(e => directory.delete(EpochLog.path(e.number)))
    epochs = live
  }

  private def load(): Vector[Epoch] = {
    val numbers = directory.list(EpochLog.Folder).flatMap(_.toLongOption)
    numbers.sorted.map { number =>
      val path = EpochLog.path(number)
      val epoch = directory.read(path, FileFormat.Kind.Epoch)(body => Epoch.decode(body.bytes, body.version))
      if (epoch.number != number) {
        throw FileFormat.corrupt(
          directory.name(path),
          FileFormat.HeaderBytes,
          s"it is the epoch of number ${epoch.number}, not of the one that names the file"
        )
      }
      epoch
    }.toVector
  }
}

private object EpochLog {
  val Folder = "epochs"

  def path(number: Long): String = s"$Folder/$number"
}
