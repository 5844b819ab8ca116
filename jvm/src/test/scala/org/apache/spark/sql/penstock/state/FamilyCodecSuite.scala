package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import io.penstock.PropertyChecks
import io.penstock.state.engine.KeyBytes
import org.scalacheck.Prop.AnyOperators
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

/** Stored bytes equal those of Spark's own encoders. */
class FamilyCodecSuite extends AnyFunSuite with PropertyChecks {
  private val schema = new StructType()
    .add("name", StringType)
    .add("group", new StructType().add("id", LongType).add("note", StringType))
    .add("start", TimestampType, nullable = false)
    .add("tag", BinaryType)
  private val valueSchema = new StructType().add("v", LongType)
  private val keyOf = UnsafeProjection.create(schema)

  private val text = Gen.option(Gen.asciiStr).map(_.map(UTF8String.fromString).orNull)
  private val keys: Gen[UnsafeRow] = for {
    name <- text
    group <- Gen.option(Gen.zip(Gen.long, text)).map(_.map { case (id, note) => InternalRow(id, note) }.orNull)
    start <- Gen.long
    tag <- Gen.option(Gen.listOf(Gen.chooseNum(-128, 127))).map(_.map(_.map(_.toByte).toArray).orNull)
  } yield keyOf(InternalRow(name, group, start, tag)).copy()

  private def bytes(k: KeyBytes): Seq[Byte] = {
    val out = new Array[Byte](k.length)
    Platform.copyMemory(k.base, k.offset, out, Platform.BYTE_ARRAY_OFFSET, k.length)
    out.toSeq
  }

  Seq(1, 2, 3).foreach { prefixFields =>
    test(s"keys with a prefix of $prefixFields fields are encoded as by Spark") {
      val spec = PrefixKeyScanStateEncoderSpec(schema, prefixFields)
      val spark = spec.toEncoder(new UnsafeRowDataEncoder(spec, valueSchema), useColumnFamilies = false)
      val codec = FamilyCodec.unsafeRow(schema, valueSchema, spec)
      val prefixOf = UnsafeProjection.create(StructType(schema.take(prefixFields)))
      check(Prop.forAllNoShrink(keys) { key =>
        val stored = bytes(codec.key(key, new KeyBytes))
        val restored = codec.keyRow(stored.toArray, Platform.BYTE_ARRAY_OFFSET.toLong, stored.length)
        val prefix = prefixOf(InternalRow.fromSeq(key.toSeq(schema).take(prefixFields))).copy()
        val storedPrefix = codec.prefix(prefix).toSeq
        (stored ?= spark.encodeKey(key).toSeq) && (restored ?= key) &&
        (storedPrefix ?= spark.encodePrefixKey(prefix).toSeq) && (stored.take(storedPrefix.size) ?= storedPrefix)
      })
    }
  }

  test("one codec encodes keys of any length one after another") {
    val codec = FamilyCodec.unsafeRow(schema, valueSchema, PrefixKeyScanStateEncoderSpec(schema, 1))
    def key(length: Int): UnsafeRow =
      keyOf(InternalRow(UTF8String.fromString("x" * length), null, length.toLong, null)).copy()
    Seq(0, 1000, 3, 100000, 7).foreach { length =>
      val stored = bytes(codec.key(key(length), new KeyBytes)).toArray
      assert(codec.keyRow(stored, Platform.BYTE_ARRAY_OFFSET, stored.length) == key(length))
    }
  }
}
