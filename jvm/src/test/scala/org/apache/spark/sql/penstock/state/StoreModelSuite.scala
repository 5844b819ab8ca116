package org.apache.spark.sql.penstock.state

import java.nio.file.Files
import java.util.UUID

import scala.collection.immutable.TreeMap
import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import io.penstock.SameOnEverySpark
import io.penstock.Seed
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.tags.Slow

/** Compares the store with a plain map per version, with lost attempts, restarts and changes during iteration. */
@Slow
@SameOnEverySpark
class StoreModelSuite extends AnyFunSuite {
  private val seed = Seed.value
  private val keySchema = new StructType().add("ts", LongType).add("k", LongType)
  private val valueSchema = new StructType().add("v", LongType)
  private val keyOf = UnsafeProjection.create(keySchema)
  private val valueOf = UnsafeProjection.create(valueSchema)
  private type Model = TreeMap[(Long, Long), Vector[Long]]

  private def key(k: (Long, Long)): UnsafeRow = keyOf(InternalRow(k._1, k._2)).copy()
  private def value(v: Long): UnsafeRow = valueOf(InternalRow(v)).copy()
  private def modelKey(r: UnsafeRow): (Long, Long) = (r.getLong(0), r.getLong(1))

  private def provider(dir: String, spec: KeyStateEncoderSpec, multi: Boolean): StandaloneProvider = {
    val p = new StandaloneProvider
    val hadoop = new Configuration()
    hadoop.set(StreamExecution.RUN_ID_KEY, UUID.randomUUID().toString)
    hadoop.set(
      "spark.sql.streaming.checkpointFileManagerClass",
      "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
    p.init(
      StateStoreId(dir, 0, 0),
      keySchema,
      valueSchema,
      spec,
      true,
      new StateStoreConf(new SQLConf),
      hadoop,
      multi,
      None
    )
    p
  }

  private def contents(s: StateStore, multi: Boolean): Seq[((Long, Long), Long)] = {
    val it = if (multi) s.iteratorWithMultiValues("default") else s.iterator("default")
    it.map(p => (modelKey(p.key), p.value.getLong(0))).toVector
  }

  private def flat(m: Model): Seq[((Long, Long), Long)] = m.toSeq.flatMap { case (k, vs) => vs.map((k, _)) }

  /** Applies one random change to both. */
  private def change(r: Random, s: StateStore, m: Model, multi: Boolean): Model = {
    val k = (r.nextInt(12).toLong - 3, r.nextInt(8).toLong)
    val v = r.nextLong()
    r.nextInt(if (multi) 6 else 4) match {
      case 0 | 1 =>
        s.put(key(k), value(v), "default")
        m.updated(k, Vector(v))
      case 2 =>
        s.remove(key(k), "default")
        m - k
      case 3 =>
        assert(Option(s.get(key(k), "default")).map(_.getLong(0)) === m.get(k).map(_.head))
        assert(s.keyExists(key(k), "default") === m.contains(k))
        m
      case 4 =>
        s.merge(key(k), value(v), "default")
        m.updated(k, m.getOrElse(k, Vector.empty) :+ v)
      case 5 =>
        s.putList(key(k), Array(value(v), value(v + 1)), "default")
        assert(s.valuesIterator(key(k), "default").map(_.getLong(0)).toSeq === Seq(v, v + 1))
        m.updated(k, Vector(v, v + 1))
    }
  }

  private def same(s: StateStore, m: Model, ordered: Boolean, multi: Boolean): Unit = {
    val found = contents(s, multi)
    if (ordered) assert(found === flat(m)) else assert(found.sorted === flat(m).sorted)
    assert(s.metrics.numKeys === m.size)
  }

  private val specs = Seq(
    ("hash", NoPrefixKeyStateEncoderSpec(keySchema), false),
    ("range", RangeKeyScanStateEncoderSpec(keySchema, Seq(0, 1)), true)
  )

  for ((name, spec, ordered) <- specs; multi <- Seq(false, true)) test(s"$name family, multi-valued $multi, is a map") {
    val r = new Random(seed)
    info(s"seed $seed")
    (0 until 6).foreach { _ =>
      val dir = Files.createTempDirectory("penstock-model").toString
      var versions = Vector[Model](TreeMap.empty)
      var p = provider(dir, spec, multi)
      (0 until 14).foreach { version =>
        // Several attempts start from the same version. All but the last are abandoned, or commit and are replaced.
        (0 until r.nextInt(3)).foreach { _ =>
          val loser = p.getStore(version.toLong, None, false, false)
          var m = versions(version)
          (0 until r.nextInt(60)).foreach(_ => m = change(r, loser, m, multi))
          same(loser, m, ordered, multi)
          if (r.nextBoolean()) loser.commit() else loser.abort()
        }
        val s = p.getStore(version.toLong, None, false, false)
        var m = versions(version)
        same(s, m, ordered, multi)
        (0 until r.nextInt(100)).foreach { i =>
          if (i % 25 == 7) {
            // An iterator shows the content at the time it was opened, whatever the attempt changes meanwhile.
            val before = flat(m)
            val it = if (multi) s.iteratorWithMultiValues("default") else s.iterator("default")
            val seen = Vector.newBuilder[((Long, Long), Long)]
            while (it.hasNext) {
              val p = it.next()
              seen += ((modelKey(p.key), p.value.getLong(0)))
              if (r.nextInt(3) == 0) {
                s.remove(p.key, "default")
                m -= modelKey(p.key)
              }
              if (r.nextInt(3) == 0) m = change(r, s, m, multi)
            }
            if (!multi) assert(seen.result().sorted === before.sorted)
          } else m = change(r, s, m, multi)
        }
        if (ordered) {
          val from = r.nextInt(10).toLong - 3
          val to = from + r.nextInt(6)
          val scan = if (multi) s.rangeScanWithMultiValues _ else s.rangeScan _
          val found =
            scan(Some(key((from, 0))), Some(key((to, 0))), "default").map(x => modelKey(x.key)).toVector.distinct
          assert(found === m.keys.filter(k => k._1 >= from && k._1 < to).toVector)
        }
        same(s, m, ordered, multi)
        assert(s.commit() === version + 1)
        versions :+= m
        if (r.nextInt(4) == 0) {
          p.close()
          p = provider(dir, spec, multi)
          StandaloneProvider.stores.drop(StateStoreId(dir, 0, 0).storeCheckpointLocation().toString)
        }
      }
      // Every version can still be read.
      versions.indices.foreach { v =>
        val s = p.getStore(v.toLong, None, false, false)
        val found = contents(s, multi)
        assert(found.sorted === flat(versions(v)).sorted)
        s.abort()
      }
    }
  }

  test("a prefix scan finds exactly the keys with the prefix, as the attempt sees them") {
    val r = new Random(seed)
    val p =
      provider(Files.createTempDirectory("penstock-model").toString, PrefixKeyScanStateEncoderSpec(keySchema, 1), false)
    val prefixOf = UnsafeProjection.create(new StructType().add("ts", LongType))
    var m: Model = TreeMap.empty
    (0 until 8).foreach { version =>
      val s = p.getStore(version.toLong, None, false, false)
      (0 until 80).foreach(_ => m = change(r, s, m, multi = false))
      (-3L until 9L).foreach { prefix =>
        val found = s.prefixScan(prefixOf(InternalRow(prefix)), "default").map(x => modelKey(x.key)).toSet
        assert(found === m.keySet.filter(_._1 == prefix))
      }
      s.commit()
    }
  }

  test("a removed column family is gone in this and later versions, and may be created again empty") {
    val p =
      provider(Files.createTempDirectory("penstock-model").toString, NoPrefixKeyStateEncoderSpec(keySchema), false)
    def create(s: StateStore): Unit =
      s.createColFamilyIfAbsent("f", keySchema, valueSchema, NoPrefixKeyStateEncoderSpec(keySchema), false, false)
    val s0 = p.getStore(0L, None, false, false)
    create(s0)
    s0.put(key((1, 1)), value(1), "f")
    s0.commit()
    val s1 = p.getStore(1L, None, false, false)
    create(s1)
    assert(s1.get(key((1, 1)), "f").getLong(0) === 1L)
    assert(s1.removeColFamilyIfExists("f"))
    assert(!s1.removeColFamilyIfExists("f"))
    create(s1)
    assert(s1.get(key((1, 1)), "f") === null)
    s1.put(key((2, 2)), value(2), "f")
    s1.commit()
    val s2 = p.getStore(2L, None, false, false)
    create(s2)
    assert(s2.iterator("f").map(x => modelKey(x.key)).toSeq === Seq((2L, 2L)))
    assert(s2.removeColFamilyIfExists("f"))
    s2.commit()
    val s3 = p.getStore(3L, None, false, false)
    create(s3)
    assert(s3.iterator("f").isEmpty)
  }
}
