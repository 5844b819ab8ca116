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

  /** Version of the formats that this code writes; it reads this one only. */
  val Version = 1

  val HeaderBytes = 20

  /** What a file is; byte 10 of the header. */
  object Kind {
    val Changelog = 1
    val Snapshots = 2
    val Manifest = 3
    val Epoch = 4
    val Format = 5
  }

  private val Magic = "PENSTOCK".getBytes(java.nio.charset.StandardCharsets.US_ASCII)

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
    out.putByte(Version & 0xff)
    out.putByte(Version >>> 8)
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
   * @return
   *   length and CRC32C of the body
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CORRUPT_FILE, or PENSTOCK_NEWER_FORMAT where a newer Penstock wrote the file
   */
  def readHeader(file: String, kind: Int, header: Array[Byte]): (Int, Int) = {
    if (header.length < HeaderBytes) throw corrupt(file, s"${header.length} bytes, shorter than a header")
    if (!java.util.Arrays.equals(header, 0, Magic.length, Magic, 0, Magic.length)) {
      throw corrupt(file, "it does not begin with PENSTOCK")
    }
    val in = new ByteSource(header, Magic.length, HeaderBytes)
    val version = in.getByte() | (in.getByte() << 8)
    if (version > Version) {
      throw new PenstockException(
        "PENSTOCK_NEWER_FORMAT",
        s"$file has format version $version, this Penstock reads up to $Version; " +
          "run the query with the Penstock version that wrote the checkpoint, or a newer one"
      )
    }
    if (version < 1) throw corrupt(file, s"format version $version")
    val found = in.getByte()
    if (found != kind) throw corrupt(file, s"kind of file $found, $kind was expected")
    val codec = in.getByte()
    if (codec != 0) throw corrupt(file, s"unknown codec $codec")
    val length = in.getInt()
    if (length < 0) throw corrupt(file, s"body of $length bytes")
    (length, in.getInt())
  }

  /** Checks and returns the body of a file that was read whole. */
  def readBody(file: String, kind: Int, bytes: Array[Byte]): Array[Byte] = {
    val (length, expected) = readHeader(file, kind, bytes)
    if (bytes.length - HeaderBytes < length) {
      throw corrupt(file, s"body of $length bytes announced, ${bytes.length - HeaderBytes} bytes there")
    }
    checkBody(file, java.util.Arrays.copyOfRange(bytes, HeaderBytes, HeaderBytes + length), expected)
  }

  def checkBody(file: String, body: Array[Byte], expected: Int): Array[Byte] = {
    val found = crc(body)
    if (found != expected) throw corrupt(file, f"checksum of the body is $found%08x, the header says $expected%08x")
    body
  }

  def corrupt(file: String, what: String, cause: Throwable = null): PenstockException =
    new PenstockException("PENSTOCK_CORRUPT_FILE", s"$file cannot be used: $what", cause)

  /** Runs a reader of a body and names the file where the bytes do not follow the format. */
  def reading[A](file: String)(read: => A): A =
    try read
    catch { case e: MalformedData => throw corrupt(file, e.getMessage, e) }
}
