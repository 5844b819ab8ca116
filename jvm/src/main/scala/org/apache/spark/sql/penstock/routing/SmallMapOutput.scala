package org.apache.spark.sql.penstock.routing

import java.io.{ByteArrayOutputStream, FileOutputStream, OutputStream}

import org.apache.spark.internal.config
import org.apache.spark.io.CompressionCodec
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter
import org.apache.spark.shuffle.checksum.{RowBasedChecksum, ShuffleChecksumSupport}
import org.apache.spark.shuffle.sort.{BypassMergeSortShuffleHandle, SerializedShuffleHandle, SortShuffleManager}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.penstock.shims.Shuffles
import org.apache.spark.storage.ShuffleBlockId
import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}

import net.jpountz.lz4.{LZ4BlockOutputStream, LZ4Factory}
import net.jpountz.xxhash.XXHashFactory

/**
 * Writes the output of a map task whose rows fit into memory. The files are the same as those of Spark's sort shuffle.
 * Spark's writer opens a compressor with 64 KiB of buffers for every block, which costs more than the rows themselves
 * if a batch of 10,000 rows goes into 256 blocks.
 */
final private[routing] class SmallMapOutput(
    dep: ShuffleDependency[Int, InternalRow, InternalRow],
    mapId: Long,
    context: TaskContext,
    metrics: ShuffleWriteMetricsReporter
) extends ShuffleChecksumSupport {
  private val env = SparkEnv.get
  private val blocks = dep.partitioner.numPartitions

  /**
   * Writes the rows as the output of the map task.
   *
   * @param buffer
   *   The rows
   * @param rowsOf
   *   Number of rows of each shard in `buffer`
   */
  def write(buffer: RowBuffer, rowsOf: Array[Long]): MapStatus = {
    val manager = Shuffles.manager(env).asInstanceOf[SortShuffleManager]
    // The manager removes only the files of tasks that requested a writer. This kind of writer allocates no buffers.
    manager.getWriter[Int, InternalRow](
      new BypassMergeSortShuffleHandle(dep.shuffleId, dep),
      mapId,
      context,
      metrics
    )
    val lengths = new Array[Long](blocks)
    val checksums = createPartitionChecksums(blocks, env.conf)
    val file = serialized(buffer, rowsOf, lengths, checksums)

    val start = System.nanoTime()
    val resolver = manager.shuffleBlockResolver
    val temporary = resolver.createTempFile(resolver.getDataFile(dep.shuffleId, mapId))
    try {
      if (file.size > 0) {
        val out = new FileOutputStream(temporary)
        try file.writeTo(out)
        finally out.close()
      }
      resolver.writeMetadataFileAndCommit(dep.shuffleId, mapId, lengths, getChecksumValues(checksums), temporary)
    } finally if (temporary.exists()) temporary.delete()
    metrics.incWriteTime(System.nanoTime() - start)
    metrics.incBytesWritten(file.size)
    MapStatus(
      env.blockManager.shuffleServerId,
      lengths,
      mapId,
      RowBasedChecksum.getAggregatedChecksumValue(dep.rowBasedChecksums)
    )
  }

  private def serialized(
      buffer: RowBuffer,
      rowsOf: Array[Long],
      lengths: Array[Long],
      checksums: Array[java.util.zip.Checksum]
  ): SmallMapOutput.File = {
    val file = new SmallMapOutput.File
    val sizes = buffer.sizes(rowsOf.length)
    val compressor = SmallMapOutput.compressor(env)
    buffer.byShard(rowsOf) { (shard, writeRows) =>
      val start = file.size
      val out = compressor(ShuffleBlockId(dep.shuffleId, mapId, shard), sizes(shard), file)
      writeRows(out)
      out.close()
      lengths(shard) = file.size - start
      if (checksums.nonEmpty) file.update(checksums(shard), start)
      metrics.incRecordsWritten(rowsOf(shard))
    }
    file
  }
}

private[routing] object SmallMapOutput {

  /** Whether this class can write the map output of a shuffle. Otherwise Spark writes it. */
  def applies(dep: ShuffleDependency[_, _, _]): Boolean = {
    val env = SparkEnv.get
    Shuffles.manager(env).getClass == classOf[SortShuffleManager] &&
    dep.shuffleHandle.isInstanceOf[SerializedShuffleHandle[_, _]] &&
    !env.serializerManager.encryptionEnabled &&
    env.conf.get(config.SHUFFLE_IO_PLUGIN_CLASS) == config.SHUFFLE_IO_PLUGIN_CLASS.defaultValue.get
  }

  final private class File extends ByteArrayOutputStream(1 << 16) {
    def update(checksum: java.util.zip.Checksum, from: Int): Unit = checksum.update(buf, from, size - from)
    override def close(): Unit = ()
  }

  /**
   * Makes a stream that compresses as Spark's reader expects, from the block, the size of its rows in bytes, and the
   * destination.
   */
  private type Compressor = (ShuffleBlockId, Int, OutputStream) => OutputStream

  private lazy val lz4 = LZ4Factory.fastestInstance()
  private lazy val xxHash = XXHashFactory.fastestInstance()

  private def compressor(env: SparkEnv): Compressor = {
    val conf = env.conf
    val isLz4 = CompressionCodec.getShortName(conf.get(config.IO_COMPRESSION_CODEC)) == CompressionCodec.LZ4
    if (conf.get(config.SHUFFLE_COMPRESS) && isLz4) {
      val maxBytes = conf.get(config.IO_COMPRESSION_LZ4_BLOCKSIZE).toInt
      val fast = lz4.fastCompressor()
      // All blocks share one checksum, because the stream resets it.
      val checksum = xxHash.newStreamingHash32(Lz4Seed).asChecksum
      // The stream's buffers are as large as its block size, so limit the block size to the size of the rows.
      (_, size, out) => new LZ4BlockOutputStream(out, math.max(64, math.min(size, maxBytes)), fast, checksum, false)
    } else (block, _, out) => env.serializerManager.wrapForCompression(block, out)
  }

  /** The default seed of LZ4BlockOutputStream, which Spark uses too. */
  private val Lz4Seed = 0x9747b28c
}
