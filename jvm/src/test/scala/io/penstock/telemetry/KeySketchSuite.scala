package io.penstock.telemetry

import java.util.SplittableRandom

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

class KeySketchSuite extends AnyFunSuite {
  private val shardOf: Int => Int = Math.floorMod(_, 16)

  /** The heavy keys that the sketch reports for a stream of (key, time), and the true times, rows and longest times. */
  private def loadsOf(stream: Iterator[(Int, Long)]): (Seq[KeyLoad], Map[Int, Long], Map[Int, Long], Map[Int, Long]) = {
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

  test("few keys are exact") {
    val (heavy, time, rows, longest) = loadsOf(Iterator.tabulate(3000)(i => (i % 3, 1000L + i % 3)))
    assert(heavy.map(_.hash).toSet == Set(0, 1, 2) && heavy.map(_.busyNs) == heavy.map(_.busyNs).sorted.reverse)
    heavy.foreach { k =>
      assert(k == KeyLoad(k.hash, shardOf(k.hash), s"key ${k.hash}", time(k.hash), longest(k.hash), rows(k.hash), 0L))
    }
  }

  test("no key with 1/64 of the time or rows is missed, and errors stay within the reported bounds") {
    (1L to 20L).foreach { seed =>
      val random = new SplittableRandom(seed)
      // One key is heavy by rows, one by time, and many are neither.
      def key(): (Int, Long) = random.nextInt(20) match {
        case 0 => (1, 100L)
        case 1 if random.nextInt(10) == 0 => (2, 30000L)
        case _ => (3 + random.nextInt(100000), 100L)
      }
      val (heavy, time, rows, longest) = loadsOf(Iterator.fill(100000)(key()))
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

  test("a key's time may be a single pause, and sampled row counts are not exact") {
    val sketch = new KeySketch
    sketch.add(1, 50000000L, 1L, 1L)("paused")
    (1 to 100).foreach(_ => sketch.add(2, 10000L, 16L, 16L)("usual"))
    val (paused, usual) = (sketch.heavy(shardOf)(0), sketch.heavy(shardOf)(1))
    assert(paused.busyErrorNs == paused.busyNs)
    assert(usual.busyErrorNs == 10000L && usual.rows == 1600L && usual.rowsError == 2 * 160L)
  }

  test("without row counts, no more key texts are rendered than could be heavy") {
    val sketch = new KeySketch
    var written = 0
    (1 to 10000).foreach { key =>
      sketch.add(key, 1000L, 0L, 1L) {
        written += 1
        s"key $key"
      }
    }
    // The first 64 readings each have at least 1/64 of the time so far.
    assert(written <= 64)
  }

  test("an empty sketch reports no key") {
    assert(new KeySketch().heavy(shardOf).isEmpty)
  }
}
