package io.penstock.state.format

/**
 * Reads one file: header and body, or sections by range. It allocates memory in proportion to the bytes that the file
 * really contains, at most twice as much, whatever lengths the file claims.
 *
 * @param file
 *   Name of the file for error messages
 */
final class FileReader(file: => String, source: FileReader.Source) {
  import FileFormat._

  /**
   * Checks the frame and returns the body.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CORRUPT_FILE, or PENSTOCK_NEWER_FORMAT if a newer Penstock wrote the file
   */
  def body(kind: Int): Body = {
    source.seek(0L)
    val header = readHeader(file, kind, next(0L, HeaderBytes))
    val body = next(HeaderBytes.toLong, header.length)
    val found = crc(body)
    if (found != header.crc) {
      throw corrupt(file, HeaderBytes, f"checksum of the body is $found%08x, but the header says ${header.crc}%08x")
    }
    if (Kind.withoutPayload(kind) && source.read(new Array[Byte](1), 0, 1) > 0) {
      throw corrupt(file, HeaderBytes.toLong + header.length, "unexpected bytes after the end of the body")
    }
    Body(header.version, body)
  }

  /**
   * Reads a section and verifies its checksum. The result of `read` is discarded if the checksum is wrong.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CORRUPT_FILE if the section is incomplete, damaged or malformed
   */
  def section[A](s: SectionRef)(read: SectionBytes => A): A = {
    source.seek(s.offset)
    val bytes = new CheckedBytes(s.length, (at, count) => next(s.offset + at, count))
    val result =
      try Right(read(bytes))
      catch { case e: MalformedData => Left(e) }
    val found = bytes.checksum()
    if (found != s.crc) {
      throw corrupt(
        file,
        s.offset,
        f"checksum of the section of ${s.length}%d bytes is $found%08x, but the manifest says ${s.crc}%08x"
      )
    }
    reading(file, s.offset)(result.fold(throw _, identity))
  }

  /** The first `most` bytes, or the whole file if it is shorter. */
  def head(most: Int): Array[Byte] = {
    source.seek(0L)
    val bytes = new Array[Byte](most)
    var n = 0
    var got = 0
    while (n < most && got >= 0) {
      got = source.read(bytes, n, most - n)
      n += math.max(0, got)
    }
    java.util.Arrays.copyOf(bytes, n)
  }

  private def next(at: Long, length: Int): Array[Byte] = {
    var bytes = new Array[Byte](math.min(length, FileReader.FirstBytes))
    var n = 0
    while (n < length) {
      if (n == bytes.length) bytes = java.util.Arrays.copyOf(bytes, math.min(length.toLong, n * 2L).toInt)
      val got = source.read(bytes, n, bytes.length - n)
      if (got < 0) throw corrupt(file, at + n, s"the file ends too early, ${length - n} of $length bytes are missing")
      n += got
    }
    bytes
  }
}

object FileReader {

  /** The bytes of a file. */
  trait Source {

    /** Moves to a position. A position after the end is no error; the next read reports the end. */
    def seek(at: Long): Unit

    /** Reads 1 to `most` bytes into `into` at index `from` and returns their number, or -1 at or after the end. */
    def read(into: Array[Byte], from: Int, most: Int): Int
  }

  /** Size of the first buffer. It grows only after it has been filled. */
  private val FirstBytes = 1 << 16
}
