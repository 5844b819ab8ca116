package io.penstock.state.format

import java.util.zip.CRC32C

import io.penstock.errors.PenstockException

/**
 * The frame of every file that Penstock writes: header, body, payload. Specified in docs/PROTOCOL.md, "Files".
 *
 * The header ends with length and CRC32C of the body, so that the body can be read without the payload, and sections of
 * the payload by range.
 */
object FileFormat {

  /** Version of the formats that this code writes, of a kind of file. It reads those from [[OldestVersion]] on. */
  def version(kind: Int): Int = if (kind == Kind.RoutingVersion) 3 else OldestVersion

  /** Of the first release. */
  val OldestVersion = 2

  val HeaderBytes = 20

  /** What a file is; byte 10 of the header. */
  object Kind {
    val Changelog = 1
    val Snapshots = 2
    val Manifest = 3
    val RoutingVersion = 4
    val Format = 5

    /** Kinds of which nothing follows the body. */
    def withoutPayload(kind: Int): Boolean = kind == RoutingVersion || kind == Format
  }

  /**
   * What a header says.
   *
   * @param version
   *   of the format, one that this code reads
   * @param length
   *   of the body
   * @param crc
   *   of the body
   */
  final case class Header(version: Int, length: Int, crc: Int)

  /**
   * What a file says besides its payload.
   *
   * @param version
   *   of the format
   */
  final case class Body(version: Int, bytes: Array[Byte])

  /** No longer body or section is written; arrays of the JVM are hardly longer. */
  val MaxBytes: Int = Int.MaxValue - 16

  /** Most shards that a query may have. */
  val MaxShards: Int = 1 << 24

  private val Magic = "PENSTOCK".getBytes(java.nio.charset.StandardCharsets.US_ASCII)

  private val VersionAt = 8
  private val KindAt = 10
  private val CodecAt = 11
  private val LengthAt = 12

  def crc(bytes: Array[Byte], offset: Int, length: Int): Int = {
    val c = new CRC32C
    c.update(bytes, offset, length)
    c.getValue.toInt
  }

  def crc(bytes: Array[Byte]): Int = crc(bytes, 0, bytes.length)

  /** Header and body; the payload, if any, is to follow. */
  def frame(kind: Int, body: Array[Byte]): Array[Byte] = {
    val out = new ByteSink(HeaderBytes + body.length)
    out.putBytes(Magic)
    out.putByte(version(kind) & 0xff)
    out.putByte(version(kind) >>> 8)
    out.putByte(kind)
    out.putByte(0)
    out.putInt(body.length)
    out.putInt(crc(body))
    out.putBytes(body)
    out.toByteArray
  }

  /**
   * Checks a header.
   *
   * @param file
   *   name for messages
   * @param header
   *   the first bytes of the file, [[HeaderBytes]] of them
   * @return
   *   what it says
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CORRUPT_FILE, or PENSTOCK_NEWER_FORMAT where a newer Penstock wrote the file
   */
  def readHeader(file: String, kind: Int, header: Array[Byte]): Header = {
    if (!java.util.Arrays.equals(header, 0, Magic.length, Magic, 0, Magic.length)) {
      throw corrupt(file, 0, "it does not begin with PENSTOCK")
    }
    val in = new ByteSource(header, Magic.length, HeaderBytes)
    val version = in.getByte() | (in.getByte() << 8)
    val newest = this.version(kind)
    if (version > newest) {
      throw new PenstockException(
        "PENSTOCK_NEWER_FORMAT",
        s"$file has format version $version, this Penstock reads $newest; " +
          "run the query with the Penstock version that wrote the checkpoint, or a newer one"
      )
    }
    if (version < OldestVersion) {
      throw corrupt(
        file,
        VersionAt,
        s"format version $version, of before the first release; this Penstock reads $OldestVersion"
      )
    }
    val found = in.getByte()
    if (found != kind) throw corrupt(file, KindAt, s"kind of file $found, $kind was expected")
    val codec = in.getByte()
    if (codec != 0) throw corrupt(file, CodecAt, s"unknown codec $codec")
    val length = in.getInt()
    if (length < 0 || length > MaxBytes) {
      throw corrupt(
        file,
        LengthAt,
        s"body of ${Integer.toUnsignedString(length)} bytes announced, $MaxBytes is the most"
      )
    }
    Header(version, length, in.getInt())
  }

  /**
   * A file that does not follow the format.
   *
   * @param at
   *   byte of the file where that shows
   */
  def corrupt(file: String, at: Long, what: String, cause: Throwable = null): PenstockException =
    new CorruptFile(s"$file cannot be used: $what, at byte $at", None, cause)

  /**
   * Runs a reader of a file, and lets the error of a corrupt one say who needs it.
   *
   * @param by
   *   that which is lost with the file
   */
  def needed[A](by: => String)(read: => A): A =
    try read
    catch { case e: CorruptFile if e.neededBy.isEmpty => throw new CorruptFile(e.found, Some(by), e) }

  final private class CorruptFile(val found: String, val neededBy: Option[String], cause: Throwable)
      extends PenstockException(
        "PENSTOCK_CORRUPT_FILE",
        found + neededBy.fold("")(by =>
          s"; $by needs it: restore the file, or start the query with a new checkpoint location"
        ),
        cause
      )

  /**
   * Runs a reader of bytes of a file, and names file and byte where they do not follow the format.
   *
   * @param base
   *   where in the file the bytes begin
   */
  def reading[A](file: => String, base: Long)(read: => A): A =
    try read
    catch { case e: MalformedData => throw corrupt(file, base + e.at, e.what, e) }
}
