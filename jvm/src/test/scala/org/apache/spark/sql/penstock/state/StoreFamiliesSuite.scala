package org.apache.spark.sql.penstock.state

import java.util.concurrent.{Callable, Executors}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import io.penstock.state.engine.KeyBytes
import org.scalatest.funsuite.AnyFunSuite

/** Concurrent attempts of one partition in one JVM, as with two actions on a batch or a resubmitted stage. */
class StoreFamiliesSuite extends AnyFunSuite {
  private val keySchema = new StructType().add("k", LongType)
  private val valueSchema = new StructType().add("v", StringType).add("n", LongType)

  private def avro(): StoreFamilies = new StoreFamilies(
    keySchema,
    valueSchema,
    NoPrefixKeyStateEncoderSpec(keySchema),
    useColumnFamilies = true,
    multiValued = false,
    "avro",
    Some(new TestStateSchemaProvider)
  )

  /** Number of rows that differ after encoding and decoding. */
  private def changed(attempt: Long): Int = {
    val codec = avro().default.codec
    val (keyOf, valueOf) = (UnsafeProjection.create(keySchema), UnsafeProjection.create(valueSchema))
    def back(bytes: KeyBytes)(row: (Array[Byte], Long, Int) => UnsafeRow): UnsafeRow = {
      val page = new Array[Byte](bytes.length)
      Platform.copyMemory(bytes.base, bytes.offset, page, Platform.BYTE_ARRAY_OFFSET, bytes.length.toLong)
      row(page, Platform.BYTE_ARRAY_OFFSET.toLong, page.length)
    }
    (0L until 20000L).count { n =>
      val key = keyOf(InternalRow(n * attempt)).copy()
      val value = valueOf(InternalRow(UTF8String.fromString("x" * (n % 50).toInt + attempt), n)).copy()
      back(codec.key(key, new KeyBytes))(codec.keyRow) != key ||
      back(codec.value(value, new KeyBytes))(codec.valueRow) != value
    }
  }

  test("concurrent attempts encode state in Avro, and each reads what it wrote") {
    val threads = Executors.newFixedThreadPool(4)
    try {
      val work = (1L to 4L).map(attempt => (() => changed(attempt)): Callable[Int])
      assert(threads.invokeAll(work.asJava).asScala.map(_.get).toSeq == Seq(0, 0, 0, 0))
    } finally threads.shutdown()
  }
}
