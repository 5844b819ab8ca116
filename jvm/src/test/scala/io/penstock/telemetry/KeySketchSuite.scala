package io.penstock.telemetry

import java.util.SplittableRandom

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

class KeySketchSuite extends AnyFunSuite {
  private val shardOf: Int => Int = Math.floorMod(_, 16)

  /** What the sketch tells of a stream of (key, time), and the truth. */
  private def told(stream: Iterator[(Int, Long)]): (Seq[KeyLoad], Map[Int, Long], Map[Int, Long], Map[Int, Long]) = {
    val sketch = new KeySketch
    val time, rows, longest = mutable.HashMap.empty[Int, Long].withDefaultValue(0L)
    stream.foreach { case (key, ns) =>
      sketch.add(key, ns, 1L, 1L)(s"key $key")
      time(key) += ns
      rows(key) += 1
      longest(key) = math.max(longest(key), ns)
    }
    (sketch.heavy(shardOf), time.toMap, rows.toMap, longest.toMap)
  }

  test("few keys: exact") {
    val (heavy, time, rows, longest) = told(Iterator.tabulate(3000)(i => (i % 3, 1000L + i % 3)))
    assert(heavy.map(_.hash).toSet == Set(0, 1, 2) && heavy.map(_.busyNs) == heavy.map(_.busyNs).sorted.reverse)
    heavy.foreach { k =>
      assert(k == KeyLoad(k.hash, shardOf(k.hash), s"key ${k.hash}", time(k.hash), longest(k.hash), rows(k.hash), 0L))
    }
  }

  test("no key with a 64th of the time or of the rows is missed, and errors are as told") {
    (1L to 20L).foreach { seed =>
      val random = new SplittableRandom(seed)
      // Heavy by rows, heavy by time, and many that are neither.
      def key(): (Int, Long) = random.nextInt(20) match {
        case 0 => (1, 100L)
        case 1 if random.nextInt(10) == 0 => (2, 30000L)
        case _ => (3 + random.nextInt(100000), 100L)
      }
      val (heavy, time, rows, longest) = told(Iterator.fill(100000)(key()))
      val (allTime, allRows) = (time.values.sum, rows.values.sum)
      val must = time.keySet.filter(k => time(k) * 64 > allTime || rows(k) * 64 > allRows)
      assert(must.subsetOf(heavy.map(_.hash).toSet), s"seed $seed")
      assert(must == Set(1, 2), s"seed $seed")
      heavy.foreach { k =>
        assert(k.text == s"key ${k.hash}")
        assert(k.busyNs >= time(k.hash) && k.busyNs - k.busyErrorNs <= time(k.hash), s"seed $seed: $k")
        assert(k.rows >= rows(k.hash) && k.rows - k.rowsError <= rows(k.hash), s"seed $seed: $k")
        assert(k.busyErrorNs <= allTime / 96 + longest(k.hash) && k.rowsError <= allRows / 96, s"seed $seed: $k")
      }
    }
  }

  test("a key whose time is one reading may have none; rows of which one of many was counted are not exact") {
    val sketch = new KeySketch
    sketch.add(1, 50000000L, 1L, 1L)("paused")
    (1 to 100).foreach(_ => sketch.add(2, 10000L, 16L, 16L)("usual"))
    val (paused, usual) = (sketch.heavy(shardOf)(0), sketch.heavy(shardOf)(1))
    assert(paused.busyErrorNs == paused.busyNs)
    assert(usual.busyErrorNs == 10000L && usual.rows == 1600L && usual.rowsError == 2 * 160L)
  }

  test("times without rows to count: no more keys are written out than could be heavy") {
    val sketch = new KeySketch
    var written = 0
    (1 to 10000).foreach { key =>
      sketch.add(key, 1000L, 0L, 1L) {
        written += 1
        s"key $key"
      }
    }
    // The first 64 readings are a 64th of those so far.
    assert(written <= 64)
  }

  test("nothing was added: no key is told") {
    assert(new KeySketch().heavy(shardOf).isEmpty)
  }
}
