package io.penstock.state.format

import scala.util.Random

/** A file in memory. Like file systems, it may return fewer bytes than requested. */
final class InMemory(file: Array[Byte], random: Random = new Random(1L)) extends FileReader.Source {
  private var at = 0L

  override def seek(to: Long): Unit = at = to

  override def read(into: Array[Byte], from: Int, most: Int): Int =
    if (at >= file.length) -1
    else {
      val n = math.min(1 + random.nextInt(most), file.length - at.toInt)
      System.arraycopy(file, at.toInt, into, from, n)
      at += n
      n
    }
}
