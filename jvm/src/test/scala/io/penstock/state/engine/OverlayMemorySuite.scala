package io.penstock.state.engine

import scala.util.Random

import org.apache.spark.unsafe.Platform

import io.penstock.Seed
import org.scalatest.funsuite.AnyFunSuite

/** Compares the heap that an overlay reports with the sum over tables that were filled in the same way. */
class OverlayMemorySuite extends AnyFunSuite {
  private val shardCount = 5

  for (ordered <- Seq(false, true)) test(s"every byte is reported exactly once: ordered $ordered") {
    info(s"seed ${Seed.value}")
    val r = new Random(Seed.value)
    var reported = 0L
    val overlay = new Overlay(ordered, shardCount, more => reported += more)
    val arena = new Arena
    val tables = Array.tabulate(if (ordered) shardCount else 1)(_ => new RecordTable(ordered, TrailerBytes, arena))
    val touched = collection.mutable.Set[Int]()
    assert(overlay.memoryBytes == 0L)
    (0 until 5000).foreach { _ =>
      val shard = r.nextInt(shardCount)
      val table = if (ordered) shard else 0
      val key = new KeyBytes().set(s"$shard-${r.nextInt(900)}".getBytes)
      val value = new Array[Byte](r.nextInt(if (r.nextInt(200) == 0) 100000 else 60))
      overlay.write(shard, Overlay.Put, key, value, Platform.BYTE_ARRAY_OFFSET.toLong, value.length)(false)
      tables(table).put(key, value, Platform.BYTE_ARRAY_OFFSET.toLong, value.length)
      touched += table
      assert(reported == arena.capacityBytes + touched.iterator.map(tables(_).indexBytes).sum)
      assert(reported == overlay.memoryBytes)
    }
  }

  test("a rejected write keeps earlier changes and the change itself, in order") {
    var allowed = true
    val overlay = new Overlay(false, 1, _ => if (!allowed) throw new IllegalStateException("no room"))
    def key(n: Int) = new KeyBytes().set(s"key $n".getBytes)
    def write(n: Int): Unit =
      overlay.write(0, Overlay.Put, key(n), new Array[Byte](300), Platform.BYTE_ARRAY_OFFSET.toLong, 300)(false)
    (0 until 20).foreach(write)
    allowed = false
    var n = 20
    intercept[IllegalStateException](while (true) { write(n); n += 1 })
    assert((0 to n).forall(k => overlay.find(0, key(k)) != KeyIndex.Absent))
    assert(overlay.keyDelta == n + 1)
  }

  private def TrailerBytes: Int = 12
}
