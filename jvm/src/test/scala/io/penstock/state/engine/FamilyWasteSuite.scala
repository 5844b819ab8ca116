package io.penstock.state.engine

import scala.util.Random

import org.apache.spark.unsafe.Platform

import io.penstock.Seed
import io.penstock.state.format.FamilyTraits
import org.scalatest.funsuite.AnyFunSuite

/** Memory of families whose records are replaced and removed. */
class FamilyWasteSuite extends AnyFunSuite {
  private val ValueBytes = 100

  for (ordered <- Seq(false, true)) test(s"a family uses at most twice its live bytes: ordered $ordered") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    val family = familyOf(ordered)
    val expected = collection.mutable.Map[Int, Byte]()
    (0 until 60000).foreach { n =>
      val key = r.nextInt(2000)
      if (r.nextInt(10) == 0) {
        remove(family, key)
        expected -= key
      } else {
        put(family, key, n.toByte)
        expected(key) = n.toByte
      }
      val table = family.table
      val live = table.refs.length.toLong * Arena.room(KeyIndex.HeaderBytes + 4 + ValueBytes)
      if (n % 100 == 0) assert(table.arena.capacityBytes <= 2 * live + 2 * Arena.PageBytes, s"after $n changes")
    }
    val table = family.table
    val key = new KeyBytes
    val found = table.refs.map { ref =>
      table.keyOf(ref, key)
      Platform.getInt(key.base, key.offset) -> Platform.getByte(table.page(ref), table.valueAt(ref))
    }
    assert(found.toMap == expected.toMap && found.length == expected.size)
  }

  test("families with even changes compact in turn: after two passes their heap size is stable") {
    val keys = 2500
    val families = Array.fill(64)(familyOf(ordered = false))
    def pass(): Seq[Long] = (0 until keys).map { key =>
      families.foreach(put(_, key, 1))
      families.map(_.table.arena.capacityBytes).sum
    }
    val live = pass().last
    val swings = Seq.fill(2)(pass()).flatten
    val level = Seq.fill(8)(pass()).flatten
    info(f"share of the live bytes: ${level.min.toDouble / live}%.3f to ${level.max.toDouble / live}%.3f; " +
      f"in the first two passes to ${swings.max.toDouble / live}%.3f")
    assert(level.max < level.min * 1.12)
    assert(level.max < live * 1.5)
  }

  test("waste limits are spread evenly, in every part of their sequence") {
    val tenth = (WasteLimits.Largest - WasteLimits.Least) / 10
    for (from <- Seq(0L, 17L, 1000000000L)) {
      val counts = (from until from + 100).map(WasteLimits.of).groupBy(l => ((l - WasteLimits.Least) / tenth).toInt)
      assert(counts.keySet == (0 until 10).toSet)
      assert(counts.values.forall(c => math.abs(c.size - 10) <= 2), counts.view.mapValues(_.size).toMap)
    }
  }

  private def familyOf(ordered: Boolean): FamilyState =
    new FamilyState(FamilyTraits(ordered = ordered, multiValued = false))

  private def put(family: FamilyState, key: Int, value: Byte): Unit =
    family.put(bytesOf(key), At, 4, Array.fill[Byte](ValueBytes)(value), At, ValueBytes)

  private def remove(family: FamilyState, key: Int): Unit = family.remove(bytesOf(key), At, 4)

  private def bytesOf(key: Int): Array[Byte] = {
    val bytes = new Array[Byte](4)
    Platform.putInt(bytes, At, key)
    bytes
  }

  private def At: Long = Platform.BYTE_ARRAY_OFFSET.toLong
}
