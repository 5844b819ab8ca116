package io.penstock.state.format

import scala.util.Random

/** Damages the bytes of a file. */
object Damage {

  /** A description of the damage, and the damaged bytes. */
  final case class Damaged(change: String, bytes: Array[Byte])

  /** The bytes truncated to every length. */
  def truncated(intact: Array[Byte]): Iterator[Damaged] =
    intact.indices.iterator.map(n => Damaged(s"truncated to $n bytes", intact.take(n)))

  /** The bytes with each single bit flipped. */
  def flipped(intact: Array[Byte]): Iterator[Damaged] =
    Iterator.range(0, intact.length * 8).map { i =>
      val bytes = intact.clone()
      bytes(i / 8) = (bytes(i / 8) ^ (1 << i % 8)).toByte
      Damaged(s"bit ${i % 8} of byte ${i / 8} flipped", bytes)
    }

  /** One to three random changes of a few bytes each. */
  def random(intact: Array[Byte], r: Random): Damaged =
    (0 to r.nextInt(3)).foldLeft(Damaged("", intact)) { (d, _) =>
      val (change, bytes) = once(d.bytes, r)
      Damaged(if (d.change.isEmpty) change else s"${d.change}, $change", bytes)
    }

  /** An empty file, and random bytes that no writer produced. */
  def foreign(r: Random): Seq[Damaged] = Damaged("an empty file", Array.emptyByteArray) +:
    Seq(1, 19, 20, 21, 300, 5000).map(n => Damaged(s"$n random bytes", r.nextBytes(n)))

  private def once(b: Array[Byte], r: Random): (String, Array[Byte]) = {
    val at = r.nextInt(b.length + 1)
    val most = b.length - at
    val count = math.min(1 + r.nextInt(if (r.nextInt(4) == 0) 64 else 8), most)
    val from = r.nextInt(b.length - count + 1)
    r.nextInt(7) match {
      case 0 => (s"$count bytes at $at made random", b.patch(at, r.nextBytes(count), count))
      case 1 =>
        val value = Plain(r.nextInt(Plain.length))
        (s"$count bytes at $at made $value", b.patch(at, Array.fill(count)(value), count))
      case 2 => (s"random bytes inserted at $at", b.patch(at, r.nextBytes(1 + r.nextInt(20)), 0))
      case 3 => (s"$count bytes at $at deleted", b.patch(at, Nil, count))
      case 4 => (s"$count bytes of $from written to $at", b.patch(at, b.slice(from, from + count), count))
      case 5 => (s"$count bytes of $from inserted at $at", b.patch(at, b.slice(from, from + count), 0))
      case 6 =>
        val large = Large(r.nextInt(Large.length))
        val over = if (r.nextBoolean()) math.min(large.length, most) else math.min(1, most)
        (s"a large number at $at in place of $over bytes", b.patch(at, large, over))
    }
  }

  private val Plain = Array[Byte](0, 1, 0x7f, -128, -1)

  /** Large numbers, encoded as varints and as four bytes. */
  private val Large: Array[Array[Byte]] =
    Array(1L << 14, 1L << 24, (1L << 31) - 17, (1L << 31) - 1, 1L << 31, 1L << 32, 1L << 62, Long.MaxValue, -1L).map {
      n =>
        val out = new ByteSink(16)
        out.putVarint(n)
        out.toByteArray
    } ++ Array(Int.MaxValue, Int.MinValue, -1, 1 << 24).map { n =>
      val out = new ByteSink(4)
      out.putInt(n)
      out.toByteArray
    }
}
