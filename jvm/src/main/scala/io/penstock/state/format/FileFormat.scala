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

  /** Format version that this code writes for a kind of file. It reads the versions from [[OldestVersion]] on. */
  def version(kind: Int): Int = if (kind == Kind.RoutingVersion) 3 else OldestVersion

  /** Format version of the first release. */
  val OldestVersion = 2

  val HeaderBytes = 20

  /** Kinds of files; byte 10 of the header. */
  object Kind {
    val Changelog = 1
    val Snapshots = 2
    val Manifest = 3
    val RoutingVersion = 4
    val Format = 5

    /** Whether files of this kind end after the body. */
    def withoutPayload(kind: Int): Boolean = kind == RoutingVersion || kind == Format
  }

  /**
   * Content of a header.
   *
   * @param version
   *   Format version, which this code can read
   * @param length
   *   Length of the body in bytes
   * @param crc
   *   CRC32C of the body
   */
  final case class Header(version: Int, length: Int, crc: Int)

  /**
   * Body of a file, without its payload.
   *
   * @param version
   *   Format version of the file
   */
  final case class Body(version: Int, bytes: Array[Byte])

  /** Length limit of a body or a section, close to that of a JVM array. */
  val MaxBytes: Int = Int.MaxValue - 16

  /** Maximum number of shards of a query. */
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

  /** Header and body of a file. The caller appends the payload, if any. */
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
   *   Name of the file for error messages
   * @param header
   *   The first [[HeaderBytes]] bytes of the file
   * @return
   *   Content of the header
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CORRUPT_FILE, or PENSTOCK_NEWER_FORMAT if a newer Penstock wrote the file
   */
  def readHeader(file: String, kind: Int, header: Array[Byte]): Header = {
    if (!java.util.Arrays.equals(header, 0, Magic.length, Magic, 0, Magic.length)) {
      throw corrupt(file, 0, "it does not begin with the magic bytes PENSTOCK")
    }
    val in = new ByteSource(header, Magic.length, HeaderBytes)
    val version = in.getByte() | (in.getByte() << 8)
    val newest = this.version(kind)
    if (version > newest) {
      throw new PenstockException(
        "PENSTOCK_NEWER_FORMAT",
        s"$file has format version $version, this Penstock reads $newest at most; " +
          "run the query with the Penstock version that wrote the checkpoint, or a newer one"
      )
    }
    if (version < OldestVersion) {
      throw corrupt(
        file,
        VersionAt,
        s"format version $version is older than the first release; this Penstock reads $OldestVersion or newer"
      )
    }
    val found = in.getByte()
    if (found != kind) throw corrupt(file, KindAt, s"the kind of the file is $found, expected $kind")
    val codec = in.getByte()
    if (codec != 0) throw corrupt(file, CodecAt, s"unknown codec $codec")
    val length = in.getInt()
    if (length < 0 || length > MaxBytes) {
      throw corrupt(
        file,
        LengthAt,
        s"the body length is ${Integer.toUnsignedString(length)} bytes, the limit is $MaxBytes bytes"
      )
    }
    Header(version, length, in.getInt())
  }

  /**
   * Error for a file that does not follow the format.
   *
   * @param at
   *   Position in the file where the error was found
   * @param problem
   *   Description of the error
   */
  def corrupt(file: String, at: Long, problem: String, cause: Throwable = null): PenstockException =
    new CorruptFile(s"$file cannot be used: $problem, at byte $at", None, cause)

  /**
   * Runs a reader of a file. The error for a corrupt file then says what needs the file.
   *
   * @param by
   *   Description of the state that cannot be read without the file
   */
  def needed[A](by: => String)(read: => A): A =
    try read
    catch { case e: CorruptFile if e.neededBy.isEmpty => throw new CorruptFile(e.problem, Some(by), e) }

  final private class CorruptFile(val problem: String, val neededBy: Option[String], cause: Throwable)
      extends PenstockException(
        "PENSTOCK_CORRUPT_FILE",
        problem + neededBy.fold("")(by =>
          s"; $by needs it: restore the file, or start the query with a new checkpoint location"
        ),
        cause
      )

  /**
   * Runs a reader of bytes of a file. The error for malformed bytes names the file and the position in the file.
   *
   * @param base
   *   Position in the file where the bytes begin
   */
  def reading[A](file: => String, base: Long)(read: => A): A =
    try read
    catch { case e: MalformedData => throw corrupt(file, base + e.at, e.what, e) }
}
