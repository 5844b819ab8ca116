package org.apache.spark.sql.penstock.routing

import scala.collection.immutable.SortedMap

import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.routing.RoutingVersion
import io.penstock.state.format.FileFormat

/**
 * The routing versions of a query, in its checkpoint. Each is a file, named by its number. It is written before its
 * first batch, and only if it differs from the routing version in force. Routing versions that no retained batch can
 * use are deleted, so their number does not grow with the query's age. One writer per query; not thread safe. Docs:
 * PROTOCOL.md, "Routing versions".
 *
 * @param retain
 *   Number of batches that the query can be rewound by (`spark.sql.streaming.minBatchesToRetain`)
 */
final class RoutingVersionLog(directory: StateDirectory, retain: Int) {
  private var routingVersions: Vector[RoutingVersion] = load()

  /** Routing versions on record, oldest first. */
  def all: Seq[RoutingVersion] = routingVersions

  /**
   * The routing version in force at a batch: the newest one whose first batch is not later. None if none is recorded.
   */
  def inForce(batch: Long): Option[RoutingVersion] = routingVersions.findLast(_.firstBatch <= batch)

  /**
   * Whether a batch is not later than the first batch of the newest routing version, so that its routing version is
   * fixed.
   */
  def settled(batch: Long): Boolean = routingVersions.lastOption.exists(_.firstBatch >= batch)

  /**
   * Writes a routing version that is in force from `batch` on. It is durable when this method returns.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CONCURRENT_RUN if another run of the query has written the same number
   */
  def append(
      batch: Long,
      shards: Int,
      tasks: SortedMap[Long, Int],
      pinSlots: Map[Long, Vector[Option[Int]]] = Map.empty,
      perCore: Set[Long] = Set.empty
  ): RoutingVersion = {
    val routingVersion =
      RoutingVersion(routingVersions.lastOption.fold(0L)(_.number + 1), batch, shards, tasks, pinSlots, perCore)
    directory.write(
      RoutingVersionLog.path(routingVersion.number),
      FileFormat.Kind.RoutingVersion,
      RoutingVersion.encode(routingVersion),
      Array.emptyByteArray,
      0
    )
    routingVersions :+= routingVersion
    routingVersion
  }

  /** Deletes the routing versions that no batch from `batch - retain` on uses. */
  def clean(batch: Long): Unit = {
    val (dead, live) = routingVersions.splitAt(routingVersions.lastIndexWhere(_.firstBatch <= batch - retain))
    dead.foreach(e => directory.delete(RoutingVersionLog.path(e.number)))
    routingVersions = live
  }

  private def load(): Vector[RoutingVersion] = {
    val numbers = directory.list(RoutingVersionLog.Folder).flatMap(_.toLongOption)
    numbers.sorted.map { number =>
      val path = RoutingVersionLog.path(number)
      val routingVersion =
        directory.read(path, FileFormat.Kind.RoutingVersion)(body => RoutingVersion.decode(body.bytes, body.version))
      if (routingVersion.number != number) {
        throw FileFormat.corrupt(
          directory.name(path),
          FileFormat.HeaderBytes,
          s"it contains the routing version number ${routingVersion.number}, which differs from the name of the file"
        )
      }
      routingVersion
    }.toVector
  }
}

private object RoutingVersionLog {
  val Folder = "epochs"

  def path(number: Long): String = s"$Folder/$number"
}
