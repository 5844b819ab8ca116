package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.penstock.lease.OperatorKind
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.types.StructType

import io.penstock.sharding.Layout

/**
 * Computes the shard of a state key from the hash of the fields that the operator is partitioned by. The exchange below
 * the operator computes the same hash. Not thread safe.
 */
trait ShardExtractor {
  def ofKey(key: UnsafeRow): Int

  /** The hash that determines the shard of a key. */
  def hashOf(key: UnsafeRow): Int

  /** The shard of all keys with the prefix, or -1 if a prefix does not determine the shard. */
  def ofPrefix(prefix: UnsafeRow): Int

  /** The shard of a range, given one of its bounds, or -1 if a range may span several shards. */
  def ofBound(bound: UnsafeRow): Int
}

object ShardExtractor {

  /** One shard holds all keys: a state partition that is read by itself, or an operator with a single partition. */
  final class Fixed(shard: Int) extends ShardExtractor {
    override def ofKey(key: UnsafeRow): Int = shard
    override def hashOf(key: UnsafeRow): Int =
      throw new UnsupportedOperationException(s"shard $shard holds all keys, so no hashes are computed")
    override def ofPrefix(prefix: UnsafeRow): Int = shard
    override def ofBound(bound: UnsafeRow): Int = shard
  }

  /**
   * The extractor of one column family.
   *
   * @param name
   *   name of the family, or of the store if the operator does not use column families
   * @param prefixedMain
   *   for a TTL family, whether the keys of the state variable that it belongs to have a user key behind the grouping
   *   key. Evaluated when the first key of the family is used
   */
  def of(
      kind: OperatorKind,
      layout: Layout,
      name: String,
      keySchema: StructType,
      spec: KeyStateEncoderSpec,
      prefixedMain: => Boolean
  ): ShardExtractor = {
    val n = keySchema.length
    kind match {
      case OperatorKind.WholeKey => new ByFields(layout, keySchema, n, prefixes = false)
      case OperatorKind.SessionWindow => new ByFields(layout, keySchema, n - 1, prefixes = true)
      case OperatorKind.Join(version) if version >= 4 =>
        // Keys of these families end with the event time, which only the schema of the spec has.
        val schema = spec.keySchema
        val postfix = spec.isInstanceOf[TimestampAsPostfixKeyStateEncoderSpec]
        new ByFields(layout, schema, schema.length - 1, prefixes = postfix, bounds = postfix)
      case OperatorKind.Join(_) =>
        new ByFields(layout, keySchema, if (name.endsWith("keyToNumValues")) n else n - 1, prefixes = false)
      case OperatorKind.TransformWithState =>
        if (name.startsWith("$ttl_")) {
          // Spark creates this family before the variable's own.
          new Deferred(new ByStruct(layout, keySchema, if (prefixedMain) List(1, 0) else List(1)))
        } else if (name.startsWith("$procTimers") || name.startsWith("$eventTimers")) {
          if (name.endsWith("_timestampToKey")) new ByStruct(layout, keySchema, List(1))
          else new ByStruct(layout, keySchema, List(0), prefixes = true)
        } else {
          spec match {
            case _: PrefixKeyScanStateEncoderSpec => new ByStruct(layout, keySchema, List(0), prefixes = true)
            case _ => new ByFields(layout, keySchema, n, prefixes = false)
          }
        }
    }
  }

  /** An extractor that is created when it is first needed. */
  final private class Deferred(make: => ShardExtractor) extends ShardExtractor {
    private lazy val made = make
    override def ofKey(key: UnsafeRow): Int = made.ofKey(key)
    override def hashOf(key: UnsafeRow): Int = made.hashOf(key)
    override def ofPrefix(prefix: UnsafeRow): Int = made.ofPrefix(prefix)
    override def ofBound(bound: UnsafeRow): Int = made.ofBound(bound)
  }

  /** Hash of the first `fields` fields. */
  final private class ByFields(
      layout: Layout,
      schema: StructType,
      fields: Int,
      prefixes: Boolean,
      bounds: Boolean = false
  ) extends ShardExtractor {
    private val hash = ShardHash.ofFields(schema, fields, layout)
    override def ofKey(key: UnsafeRow): Int = hash.of(key)
    override def hashOf(key: UnsafeRow): Int = hash.ofKey(key)
    override def ofPrefix(prefix: UnsafeRow): Int = if (prefixes) ofKey(prefix) else -1
    override def ofBound(bound: UnsafeRow): Int = if (bounds) ofKey(bound) else -1
  }

  /** Hash of the fields of a nested struct. `path` has the field numbers that lead to it. */
  final private class ByStruct(layout: Layout, schema: StructType, path: List[Int], prefixes: Boolean = false)
      extends ShardExtractor {
    private val steps = path
      .scanLeft((schema, 0)) { case ((s, _), i) =>
        val inner = s(i).dataType.asInstanceOf[StructType]
        (inner, i)
      }
      .tail
    private val grouping = steps.last._1
    private val hash = ShardHash.ofFields(grouping, grouping.length, layout)

    override def ofKey(key: UnsafeRow): Int = hash.of(groupingKey(key))
    override def hashOf(key: UnsafeRow): Int = hash.ofKey(groupingKey(key))

    private def groupingKey(key: UnsafeRow): UnsafeRow = {
      var row = key
      steps.foreach { case (s, i) => row = row.getStruct(i, s.length) }
      row
    }

    override def ofPrefix(prefix: UnsafeRow): Int = if (prefixes) ofKey(prefix) else -1
    override def ofBound(bound: UnsafeRow): Int = -1
  }
}
