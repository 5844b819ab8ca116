package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import org.apache.spark.internal.config
import org.apache.spark.io.CompressionCodec
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.shuffle.{BaseShuffleHandle, BlockStoreShuffleReader, ShuffleReadMetricsReporter}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.penstock.shims.Shuffles
import org.apache.spark.storage.{BlockId, BlockManagerId, ShuffleBlockBatchId, ShuffleBlockId}
import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}

/** Reads several ranges of shuffle blocks as one input of a task. */
private[routing] object BlockList {
  private type Block = (BlockId, Long, Int)

  /**
   * Reads the rows of the blocks in `runs`.
   *
   * @param runs
   *   Ranges `[start, end)` of adjacent blocks, in ascending order and with gaps between them
   */
  def read(
      dep: ShuffleDependency[Int, InternalRow, InternalRow],
      runs: Seq[(Int, Int)],
      context: TaskContext,
      metrics: ShuffleReadMetricsReporter
  ): Iterator[InternalRow] = {
    val env = SparkEnv.get
    dep.shuffleHandle match {
      case handle: BaseShuffleHandle[Int, InternalRow, InternalRow] @unchecked
          if runs.size > 1 && Shuffles.manager(env).isInstanceOf[SortShuffleManager] =>
        // One fetcher for all ranges. Spark's own batching must be off: it merges all blocks of a map task from the
        // first to the last, and would read the gaps between ranges as well.
        new BlockStoreShuffleReader[Int, InternalRow](
          handle,
          byAddress(dep, runs, context),
          context,
          metrics,
          env.serializerManager,
          env.blockManager,
          env.mapOutputTracker,
          shouldBatchFetch = false
        ).read().map(_._2)
      case handle =>
        runs.iterator.flatMap { case (start, end) =>
          Shuffles.manager(env)
            .getReader[Int, InternalRow](handle, start, end, context, metrics)
            .read()
            .map(_._2)
        }
    }
  }

  private def byAddress(
      dep: ShuffleDependency[Int, InternalRow, InternalRow],
      runs: Seq[(Int, Int)],
      context: TaskContext
  ): Iterator[(BlockManagerId, collection.Seq[Block])] = {
    val env = SparkEnv.get
    val here = env.blockManager.blockManagerId.executorId
    val batching = mayBatch(dep, context)
    val blocks = mutable.LinkedHashMap.empty[BlockManagerId, mutable.ArrayBuffer[Block]]
    runs.foreach { case (start, end) =>
      env.mapOutputTracker.getMapSizesByExecutorId(dep.shuffleId, 0, Int.MaxValue, start, end).foreach {
        case (address, found) =>
          val list = blocks.getOrElseUpdate(address, mutable.ArrayBuffer.empty)
          // A request to a remote executor can hold only one range per map task, so blocks are requested one by one
          // there.
          if (batching && address.executorId == here) list ++= merged(found) else list ++= found
      }
    }
    blocks.iterator
  }

  /** Merges the blocks of one range into one batch block per map task. */
  private def merged(blocks: collection.Seq[Block]): Seq[Block] = {
    val byMap = mutable.LinkedHashMap.empty[Long, mutable.ArrayBuffer[(ShuffleBlockId, Long, Int)]]
    blocks.foreach { case (id, size, mapIndex) =>
      val block = id.asInstanceOf[ShuffleBlockId]
      byMap.getOrElseUpdate(block.mapId, mutable.ArrayBuffer.empty) += ((block, size, mapIndex))
    }
    byMap.iterator.map { case (mapId, ofMap) =>
      val (first, last) = (ofMap.head._1, ofMap.last._1)
      val id: BlockId = ShuffleBlockBatchId(first.shuffleId, mapId, first.reduceId, last.reduceId + 1)
      (id, ofMap.map(_._2).sum, ofMap.head._3)
    }.toSeq
  }

  /** The conditions under which Spark itself reads adjacent blocks as one. */
  private def mayBatch(dep: ShuffleDependency[Int, InternalRow, InternalRow], context: TaskContext): Boolean = {
    val conf = SparkEnv.get.conf
    SortShuffleManager.canUseBatchFetch(0, 2, context) &&
    dep.serializer.supportsRelocationOfSerializedObjects &&
    !conf.get(config.SHUFFLE_USE_OLD_FETCH_PROTOCOL) &&
    !conf.get(config.IO_ENCRYPTION_ENABLED) &&
    (!conf.get(config.SHUFFLE_COMPRESS) ||
      CompressionCodec.supportsConcatenationOfSerializedStreams(CompressionCodec.createCodec(conf)))
  }
}
