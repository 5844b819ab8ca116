package io.penstock.routing

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.util.zip.CRC32C

import scala.collection.immutable.SortedMap

import io.penstock.errors.PenstockException

/**
 * What a query routes by from one batch on, until the next epoch.
 *
 * @param number
 *   0, 1, 2, ... in the order of their first batches
 * @param firstBatch
 *   first batch that uses it
 * @param shards
 *   S
 * @param tasks
 *   N by region
 */
final case class Epoch(number: Long, firstBatch: Long, shards: Int, tasks: SortedMap[Long, Int])

/**
 * The bytes of an epoch, all numbers big-endian:
 *
 * {{{
 * offset  size  field
 *      0     4  magic, the ASCII letters PKEP
 *      4     4  format version, 1
 *      8     4  length of the payload in bytes
 *     12     n  payload
 *   12+n     4  CRC32C of bytes 0 to 12+n-1
 *
 * payload:
 *      0     8  number of the epoch
 *      8     8  first batch
 *     16     4  S, number of shards
 *     20     4  number of regions
 *     24    12  per region, ascending: region (8 bytes), N, its number of tasks (4 bytes)
 * }}}
 *
 * A reader refuses another magic, a newer version, a wrong length and a wrong checksum, and names the file.
 */
object Epoch {
  val Version = 1
  private val Magic = 0x504b4550 // PKEP
  private val HeaderBytes = 12
  private val TrailerBytes = 4

  /** The frame of an epoch. */
  def encode(epoch: Epoch): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    val out = new DataOutputStream(bytes)
    out.writeInt(Magic)
    out.writeInt(Version)
    out.writeInt(24 + 12 * epoch.tasks.size)
    out.writeLong(epoch.number)
    out.writeLong(epoch.firstBatch)
    out.writeInt(epoch.shards)
    out.writeInt(epoch.tasks.size)
    epoch.tasks.foreach { case (region, tasks) =>
      out.writeLong(region)
      out.writeInt(tasks)
    }
    out.writeInt(checksum(bytes.toByteArray, bytes.size))
    bytes.toByteArray
  }

  /**
   * Reads a frame.
   *
   * @param file
   *   where it came from, for errors
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NEWER_FORMAT, PENSTOCK_CORRUPT_FILE
   */
  def decode(frame: Array[Byte], file: String): Epoch = {
    def corrupt(found: String, expected: String): Nothing = throw new PenstockException(
      "PENSTOCK_CORRUPT_FILE",
      s"$file: found $found, expected $expected. Restore the file from a backup; without it the query cannot repeat " +
        "the batches that used this epoch."
    )
    if (frame.length < HeaderBytes + TrailerBytes)
      corrupt(s"${frame.length} bytes", s"at least ${HeaderBytes + TrailerBytes}")
    val in = new DataInputStream(new ByteArrayInputStream(frame))
    val magic = in.readInt()
    if (magic != Magic) corrupt(f"magic 0x$magic%08x", f"0x$Magic%08x, an epoch")
    val version = in.readInt()
    if (version > Version) {
      throw new PenstockException(
        "PENSTOCK_NEWER_FORMAT",
        s"$file: found format version $version, expected at most $Version. The checkpoint was written by a newer " +
          "Penstock: use that version or a later one."
      )
    }
    if (version < 1) corrupt(s"format version $version", s"1 to $Version")
    val length = in.readInt()
    if (length != frame.length - HeaderBytes - TrailerBytes)
      corrupt(s"a payload of $length bytes", s"${frame.length - HeaderBytes - TrailerBytes}, by the size of the file")
    val sum = checksum(frame, frame.length - TrailerBytes)
    val written = java.nio.ByteBuffer.wrap(frame).getInt(frame.length - TrailerBytes)
    if (sum != written) corrupt(f"checksum 0x$written%08x", f"0x$sum%08x")
    val (number, first, shards, regions) = (in.readLong(), in.readLong(), in.readInt(), in.readInt())
    if (length != 24 + 12L * regions)
      corrupt(s"$regions regions", s"${(length - 24) / 12}, by the length of the payload")
    Epoch(number, first, shards, SortedMap.from(Seq.fill(regions)(in.readLong() -> in.readInt())))
  }

  private def checksum(bytes: Array[Byte], length: Int): Int = {
    val crc = new CRC32C
    crc.update(bytes, 0, length)
    crc.getValue.toInt
  }
}
