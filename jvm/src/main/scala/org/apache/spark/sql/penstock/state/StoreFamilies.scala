package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** The column families of one store: their schemas and codecs, and the rules for their names. Not thread safe. */
final class StoreFamilies(
    val keySchema: StructType,
    val valueSchema: StructType,
    spec: KeyStateEncoderSpec,
    val useColumnFamilies: Boolean,
    multiValued: Boolean,
    encoding: String,
    schemas: Option[StateSchemaProvider]
) {
  import StoreFamilies._

  private val made = mutable.LinkedHashMap[String, Family]()

  val default: Family =
    family(StateStore.DEFAULT_COL_FAMILY_NAME, keySchema, valueSchema, spec, multiValued, isInternal = false)

  def family(
      name: String,
      keySchema: StructType,
      valueSchema: StructType,
      spec: KeyStateEncoderSpec,
      multiValued: Boolean,
      isInternal: Boolean
  ): Family = {
    schemas match {
      case Some(t: TestStateSchemaProvider) => t.captureSchema(name, keySchema, valueSchema)
      case _ =>
    }
    val codec =
      if (encoding == "avro") {
        // Spark's own encoders are shared by all attempts of a partition in a JVM, which it runs one by one. Here they
        // may run at the same time.
        FamilyCodec.evolving(new AvroStateEncoder(spec, valueSchema, schemas, name), spec)
      } else FamilyCodec.unsafeRow(keySchema, valueSchema, spec)
    val family = new Family(name, keySchema, spec, multiValued, isInternal, codec)
    made(name) = family
    family
  }

  /** Every family that was created here, the default one first. */
  def all: Iterable[Family] = made.values

  /** Rules for creating and removing families, as in Spark's RocksDB provider. */
  def verifyNew(operation: String, name: String, isInternal: Boolean): Unit = {
    if (!useColumnFamilies) throw StateStoreErrors.unsupportedOperationException(operation, NoFamilies)
    if (name.isEmpty || name.trim != name || name == StateStore.DEFAULT_COL_FAMILY_NAME) {
      throw StateStoreErrors.cannotUseColumnFamilyWithInvalidName(operation, name)
    }
    if (!isInternal && name.charAt(0) == '$' && operation == "create_col_family") {
      throw StateStoreErrors.cannotCreateColumnFamilyWithReservedChars(name)
    }
  }

  /** Rules for using a family. */
  def verifyKnown(operation: String, name: String, exists: String => Boolean): Unit =
    if (name != StateStore.DEFAULT_COL_FAMILY_NAME) {
      if (!useColumnFamilies) throw StateStoreErrors.unsupportedOperationException(operation, NoFamilies)
      if (name.isEmpty || name.trim != name)
        throw StateStoreErrors.cannotUseColumnFamilyWithInvalidName(operation, name)
      if (!exists(name)) throw StateStoreErrors.unsupportedOperationOnMissingColumnFamily(operation, name)
    }
}

object StoreFamilies {
  private val NoFamilies = "multiple column families is disabled in PenstockStateStoreProvider"

  final class Family(
      val name: String,
      val keySchema: StructType,
      val spec: KeyStateEncoderSpec,
      val multiValued: Boolean,
      val isInternal: Boolean,
      val codec: FamilyCodec
  )
}
