package org.apache.spark.sql.penstock.integration.soak

import java.lang.management.ManagementFactory
import java.nio.file.{Files, NoSuchFileException, Path}
import java.nio.{ByteBuffer, ByteOrder}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.penstock.state.ShardStores

import com.sun.management.UnixOperatingSystemMXBean

/** Samples a query's use of this process and of its disk. */
final class Sampler(checkpoint: Path) {

  /** One sample of each quantity, in the order of `Quantities`. */
  def sample(): Seq[Double] = Seq(
    heapAfterCollection.toDouble,
    ShardStores.current.memory.bytes.toDouble,
    ManagementFactory.getThreadMXBean.getThreadCount.toDouble,
    descriptors.toDouble,
    files.toDouble,
    newestManifest.toDouble
  )

  /**
   * Heap in use after a full collection, that is, live objects only. Without the explicit collection, the collector
   * examines the old generation so rarely that one look would stand for a third of a short soak.
   */
  private def heapAfterCollection: Long = {
    System.gc()
    ManagementFactory.getMemoryPoolMXBeans.asScala
      .flatMap(p => Option(p.getCollectionUsage))
      .map(_.getUsed)
      .sum
  }

  private def descriptors: Long =
    ManagementFactory.getOperatingSystemMXBean.asInstanceOf[UnixOperatingSystemMXBean].getOpenFileDescriptorCount

  /** Size of the newest manifest's body, which names the changes that no snapshot contains. */
  private def newestManifest: Long = {
    val all = checkpoint.resolve("state/_penstock/manifests").toFile.listFiles.filterNot(_.getName.startsWith("."))
    val newest = all.maxBy(_.getName.split('.').map(_.toLong).toSeq)(Ordering.Implicits.seqOrdering)
    val header = Using.resource(Files.newInputStream(newest.toPath))(_.readNBytes(16))
    ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getInt(12).toLong
  }

  /** Number of files. A running query deletes files while they are counted. */
  private def files: Long =
    try Using.resource(Files.walk(checkpoint))(_.count())
    catch { case _: NoSuchFileException | _: java.io.UncheckedIOException => files }
}

object Sampler {
  val Quantities: Seq[Flatness] = Seq(
    Flatness("heap after collection (bytes)", 0.10, 64e6),
    Flatness("heap of state (bytes)", 0.05, 1e6),
    Flatness("threads", 0.05, 5),
    Flatness("file descriptors", 0.05, 10),
    Flatness("files of the checkpoint", 0.05, 40),
    Flatness("body of the newest manifest (bytes)", 0.10, 4000)
  )
}
