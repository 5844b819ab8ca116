package io.penstock.state.format

/**
 * Reads one file: header and body, or sections by range. Whatever lengths the bytes announce, memory is taken for what
 * the file turns out to hold, twice at most.
 *
 * @param file
 *   name for messages
 */
final class FileReader(file: => String, source: FileReader.Source) {
  import FileFormat._

  /**
   * Checks the frame and returns the body.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CORRUPT_FILE, or PENSTOCK_NEWER_FORMAT where a newer Penstock wrote the file
   */
  def body(kind: Int): Body = {
    source.seek(0L)
    val header = readHeader(file, kind, next(0L, HeaderBytes))
    val body = next(HeaderBytes.toLong, header.length)
    val found = crc(body)
    if (found != header.crc) {
      throw corrupt(file, HeaderBytes, f"checksum of the body is $found%08x, the header says ${header.crc}%08x")
    }
    if (Kind.withoutPayload(kind) && source.read(new Array[Byte](1), 0, 1) > 0) {
      throw corrupt(file, HeaderBytes.toLong + header.length, "more follows where it should end")
    }
    Body(header.version, body)
  }

  /**
   * Reads a section and checks it. What the reader makes of bytes whose checksum is wrong is never handed out.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CORRUPT_FILE
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
        f"checksum of the section of ${s.length}%d bytes is $found%08x, the manifest says ${s.crc}%08x"
      )
    }
    reading(file, s.offset)(result.fold(throw _, identity))
  }

  /** The first bytes, fewer where the file is shorter. */
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
      if (got < 0) throw corrupt(file, at + n, s"it ends too early, ${length - n} of $length bytes are missing")
      n += got
    }
    bytes
  }
}

object FileReader {

  /** The bytes of a file. */
  trait Source {

    /** Goes to a byte. Behind the end is no error: what is read next tells. */
    def seek(at: Long): Unit

    /** Reads 1 to `most` bytes into `into` from `from` on and returns how many; -1 at the end, or behind it. */
    def read(into: Array[Byte], from: Int, most: Int): Int
  }

  /** More than this is taken only when as much has been read. */
  private val FirstBytes = 1 << 16
}
