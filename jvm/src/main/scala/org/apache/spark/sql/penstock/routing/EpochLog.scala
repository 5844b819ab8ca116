package org.apache.spark.sql.penstock.routing

import java.io.FileNotFoundException

import scala.collection.immutable.SortedMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import io.penstock.errors.PenstockException
import io.penstock.routing.Epoch

/**
 * The epochs of a query, in its checkpoint: one file each, `<state root>/_penstock/epochs/<number>.epoch`, written
 * before the first batch that uses it and only where it differs from the epoch in force. Epochs that no retained batch
 * can use are deleted, so their number does not grow with the query's age. One writer per query; not thread safe.
 *
 * @param retain
 *   batches that the query can be rewound by (`spark.sql.streaming.minBatchesToRetain`)
 */
final class EpochLog(stateRoot: String, hadoopConf: Configuration, retain: Int) {
  private val dir = new Path(new Path(stateRoot, "_penstock"), "epochs")
  private val files = CheckpointFileManager.create(dir, hadoopConf)
  private var epochs: Vector[Epoch] = load()

  /** Epochs on record, oldest first. */
  def all: Seq[Epoch] = epochs

  /** The epoch that is in force at a batch, if one is on record. */
  def inForce(batch: Long): Option[Epoch] = epochs.findLast(_.firstBatch <= batch)

  /** Whether a batch is older than the newest epoch's first, so that its epoch is settled. */
  def settled(batch: Long): Boolean = epochs.lastOption.exists(_.firstBatch >= batch)

  /** Makes an epoch with this content the one in force from `batch` on; durable when this returns. */
  def append(batch: Long, shards: Int, tasks: SortedMap[Long, Int]): Epoch = {
    val epoch = Epoch(epochs.lastOption.fold(0L)(_.number + 1), batch, shards, tasks)
    write(epoch)
    epochs :+= epoch
    epoch
  }

  /** Deletes what no batch from `batch - retain` on uses. */
  def clean(batch: Long): Unit = {
    val oldest = batch - retain
    val (dead, live) = epochs.zipWithIndex.partition { case (_, i) =>
      i + 1 < epochs.length && epochs(i + 1).firstBatch <= oldest
    }
    dead.foreach { case (e, _) => files.delete(file(e.number)) }
    epochs = live.map(_._1)
  }

  private def file(number: Long) = new Path(dir, s"$number${EpochLog.Suffix}")

  private def write(epoch: Epoch): Unit = {
    if (!files.exists(dir)) files.mkdirs(dir)
    val out =
      try files.createAtomic(file(epoch.number), overwriteIfPossible = false)
      catch { case e: FileAlreadyExistsException => throw EpochLog.taken(file(epoch.number), e) }
    try {
      out.write(Epoch.encode(epoch))
      out.close()
    } catch {
      case e: FileAlreadyExistsException =>
        out.cancel()
        throw EpochLog.taken(file(epoch.number), e)
      case e: Throwable =>
        out.cancel()
        throw e
    }
  }

  private def load(): Vector[Epoch] = {
    val found =
      try files.list(dir, (p: Path) => EpochLog.number(p).isDefined).toSeq.map(_.getPath)
      catch { case _: FileNotFoundException => Nil }
    found.sortBy(EpochLog.number(_).get).map { path =>
      val in = files.open(path)
      val epoch =
        try Epoch.decode(in.readAllBytes(), path.toString)
        finally in.close()
      if (!EpochLog.number(path).contains(epoch.number)) {
        throw new PenstockException(
          "PENSTOCK_CORRUPT_FILE",
          s"$path: found epoch ${epoch.number}, expected ${EpochLog.number(path).get}, by the file's name. Restore the file " +
            "from a backup."
        )
      }
      epoch
    }.toVector
  }
}

private object EpochLog {
  val Suffix = ".epoch"

  def number(path: Path): Option[Long] =
    Option(path.getName).filter(_.endsWith(Suffix)).flatMap(_.stripSuffix(Suffix).toLongOption)

  def taken(path: Path, cause: Throwable) = new PenstockException(
    "PENSTOCK_CONCURRENT_RUN",
    s"$path exists already: another run of this query, with the same checkpoint, has written it. Stop the other run, " +
      "then start the query again.",
    cause
  )
}
