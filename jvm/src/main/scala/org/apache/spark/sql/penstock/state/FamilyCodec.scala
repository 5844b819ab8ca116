package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.catalyst.expressions.{BoundReference, JoinedRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform

import io.penstock.state.engine.KeyBytes
import io.penstock.state.format.Bytes

/** Converts rows of a column family to stored bytes and back. Not thread safe. */
trait FamilyCodec {

  /** Points `into` at the stored form of a key. */
  def key(row: UnsafeRow, into: KeyBytes): KeyBytes

  def keyRow(page: Array[Byte], at: Long, length: Int): UnsafeRow

  /** Stored form of a bound of a range scan. */
  def bound(row: UnsafeRow): Array[Byte]

  /** Bytes with which the stored form of every key with this prefix begins. */
  def prefix(row: UnsafeRow): Array[Byte]

  /** Points `into` at the stored form of a value. */
  def value(row: UnsafeRow, into: KeyBytes): KeyBytes

  def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow

  /** Whether keys must be kept in the order of their bytes. */
  def ordered: Boolean

  /** Whether the order serves only to find the keys of a prefix. Entries of different shards then need no order. */
  def scansByPrefixOnly: Boolean = false

  def supportsPrefixScan: Boolean
  def supportsRangeScan: Boolean
  def supportsDeleteRange: Boolean
}

object FamilyCodec {

  /**
   * Codec for rows as Spark holds them. Values and unordered keys are stored as they are in memory. Keys for range
   * scans are encoded by Spark's order-preserving encoders, and keys for prefix scans in the format of Spark's encoder.
   */
  def unsafeRow(keySchema: StructType, valueSchema: StructType, spec: KeyStateEncoderSpec): FamilyCodec =
    spec match {
      case _: NoPrefixKeyStateEncoderSpec => new PlainCodec(keySchema.length, valueSchema.length)
      case p: PrefixKeyScanStateEncoderSpec =>
        new PrefixedKeyCodec(p.keySchema, p.numColsPrefixKey, new UnsafeRowValues(valueSchema))
      case _ => new EncodedKeyCodec(new UnsafeRowDataEncoder(spec, valueSchema), spec, new UnsafeRowValues(valueSchema))
    }

  /** Codec for a data encoder that numbers schemas and converts rows of older schemas (Avro). */
  def evolving(encoder: RocksDBDataEncoder, spec: KeyStateEncoderSpec): FamilyCodec =
    new EncodedKeyCodec(encoder, spec, new EncodedValues(encoder))

  private trait Values {
    def value(row: UnsafeRow, into: KeyBytes): KeyBytes
    def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow
  }

  final private class UnsafeRowValues(schema: StructType) extends Values {
    private val fields = schema.length
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes =
      into.set(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = pointTo(fields, page, at, length)
  }

  final private class EncodedValues(encoder: RocksDBDataEncoder) extends Values {
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes = into.set(encoder.encodeValue(row))
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow =
      encoder.decodeValue(copy(page, at, length)).copy()
  }

  /** Unordered keys, stored as they are in memory. */
  final private class PlainCodec(keyFields: Int, valueFields: Int) extends FamilyCodec {
    override def key(row: UnsafeRow, into: KeyBytes): KeyBytes =
      into.set(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    override def keyRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = pointTo(keyFields, page, at, length)
    override def bound(row: UnsafeRow): Array[Byte] =
      throw new UnsupportedOperationException("unordered keys cannot be scanned by range")
    override def prefix(row: UnsafeRow): Array[Byte] =
      throw new UnsupportedOperationException("unordered keys cannot be scanned by prefix")
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes =
      into.set(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow =
      pointTo(valueFields, page, at, length)
    override def ordered: Boolean = false
    override def supportsPrefixScan: Boolean = false
    override def supportsRangeScan: Boolean = false
    override def supportsDeleteRange: Boolean = false
  }

  /**
   * Keys that are scanned by their first fields, in the format of Spark's encoder: the length of the prefix row with
   * its version byte, then the prefix row and the row of the other fields, each behind a version byte. Spark creates
   * seven arrays and rows for each key. This codec writes to one array that is used again, and reads rows in place.
   */
  final private class PrefixedKeyCodec(schema: StructType, prefixFields: Int, values: Values) extends FamilyCodec {
    import PrefixedKeyCodec._

    private val prefixOf = project(0, prefixFields)
    private val restOf = project(prefixFields, schema.length)
    private val prefixRow = new UnsafeRow(prefixFields)
    private val restRow = new UnsafeRow(schema.length - prefixFields)
    private val joined = new JoinedRow(prefixRow, restRow)
    private val restored = UnsafeProjection.create(schema)
    private var stored = new Array[Byte](64)

    override def key(row: UnsafeRow, into: KeyBytes): KeyBytes = {
      val prefix = prefixOf(row)
      val rest = restOf(row)
      val restAt = LengthBytes + VersionBytes + prefix.getSizeInBytes
      val length = restAt + VersionBytes + rest.getSizeInBytes
      if (stored.length < length) stored = new Array[Byte](2 * length)
      putPrefix(prefix, stored)
      putRow(rest, stored, restAt)
      into.set(stored, Platform.BYTE_ARRAY_OFFSET, length)
    }

    override def keyRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = {
      val prefixBytes = Platform.getInt(page, at)
      val restAt = LengthBytes + prefixBytes
      prefixRow.pointTo(page, at + LengthBytes + VersionBytes, prefixBytes - VersionBytes)
      restRow.pointTo(page, at + restAt + VersionBytes, length - restAt - VersionBytes)
      restored(joined).copy()
    }

    override def prefix(row: UnsafeRow): Array[Byte] = {
      val bytes = new Array[Byte](LengthBytes + VersionBytes + row.getSizeInBytes)
      putPrefix(row, bytes)
      bytes
    }

    override def bound(row: UnsafeRow): Array[Byte] =
      throw new UnsupportedOperationException("keys for prefix scans cannot be scanned by range")
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes = values.value(row, into)
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = values.valueRow(page, at, length)
    override def ordered: Boolean = true
    override def scansByPrefixOnly: Boolean = true
    override def supportsPrefixScan: Boolean = true
    override def supportsRangeScan: Boolean = false
    override def supportsDeleteRange: Boolean = false

    private def putPrefix(prefix: UnsafeRow, into: Array[Byte]): Unit = {
      Platform.putInt(into, Platform.BYTE_ARRAY_OFFSET, VersionBytes + prefix.getSizeInBytes)
      putRow(prefix, into, LengthBytes)
    }

    private def putRow(row: UnsafeRow, into: Array[Byte], at: Int): Unit = {
      into(at) = RocksDBStateStoreProvider.STATE_ENCODING_VERSION
      Bytes.copy(
        row.getBaseObject,
        row.getBaseOffset,
        into,
        Platform.BYTE_ARRAY_OFFSET + at + VersionBytes.toLong,
        row.getSizeInBytes
      )
    }

    private def project(from: Int, until: Int): UnsafeProjection =
      UnsafeProjection.create((from until until).map(i => BoundReference(i, schema(i).dataType, schema(i).nullable)))
  }

  private object PrefixedKeyCodec {
    val LengthBytes = 4
    val VersionBytes: Int = RocksDBStateStoreProvider.STATE_ENCODING_NUM_VERSION_BYTES
  }

  final private class EncodedKeyCodec(data: RocksDBDataEncoder, spec: KeyStateEncoderSpec, values: Values)
      extends FamilyCodec {
    private val encoder = spec.toEncoder(data, useColumnFamilies = false)
    override def key(row: UnsafeRow, into: KeyBytes): KeyBytes = into.set(encoder.encodeKey(row))
    override def keyRow(page: Array[Byte], at: Long, length: Int): UnsafeRow =
      encoder.decodeKey(copy(page, at, length)).copy()
    override def bound(row: UnsafeRow): Array[Byte] = encoder.encodeKey(row)
    override def prefix(row: UnsafeRow): Array[Byte] = encoder.encodePrefixKey(row)
    override def value(row: UnsafeRow, into: KeyBytes): KeyBytes = values.value(row, into)
    override def valueRow(page: Array[Byte], at: Long, length: Int): UnsafeRow = values.valueRow(page, at, length)
    override def ordered: Boolean = !spec.isInstanceOf[NoPrefixKeyStateEncoderSpec]
    override def supportsPrefixScan: Boolean = encoder.supportPrefixKeyScan
    override def supportsRangeScan: Boolean = encoder.supportsRangeScan
    override def supportsDeleteRange: Boolean = encoder.supportsDeleteRange
  }

  private def pointTo(fields: Int, page: Array[Byte], at: Long, length: Int): UnsafeRow = {
    val row = new UnsafeRow(fields)
    row.pointTo(page, at, length)
    row
  }

  private def copy(page: Array[Byte], at: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.copyMemory(page, at, bytes, Platform.BYTE_ARRAY_OFFSET, length)
    bytes
  }
}
