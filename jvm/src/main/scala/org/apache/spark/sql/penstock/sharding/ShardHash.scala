package org.apache.spark.sql.penstock.sharding

import java.util.function.ToIntFunction

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeAndComment,
  CodeFormatter,
  CodeGenerator,
  CodegenContext,
  GeneratedClass
}
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  CollationAwareMurmur3Hash,
  Expression,
  GenericInternalRow
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import io.penstock.context.Component
import io.penstock.sharding.Layout

/**
 * Computes the shard of a row from the hash that Spark partitions state by, and a layout. An instance must be used by
 * one thread only.
 */
final class ShardHash private (hash: ToIntFunction[InternalRow], layout: Layout) {
  def of(row: InternalRow): Int = layout.shardOf(ofKey(row))

  /** The hash of the row's key. */
  def ofKey(row: InternalRow): Int = hash.applyAsInt(row)
}

/**
 * Makes hashes, and keeps the newest generated classes.
 *
 * An object, because readers of state use it too, in applications that run without the plugin. The contexts of the driver
 * and of the executor own it, and forget the classes.
 */
object ShardHash extends Component with Logging {

  override def held: Map[String, Long] =
    Map("classes" -> withoutReferences.synchronized(withoutReferences.size.toLong))

  override def close(): Unit = withoutReferences.synchronized(withoutReferences.clear())

  /**
   * Makes a hash for the rows of one task.
   *
   * @param keys
   *   Bound expressions of the key. They must not be shared with other tasks, because some have parsers and writers
   *   that they reuse for each row
   * @param layout
   *   Layout of the shards
   */
  def apply(keys: Seq[Expression], layout: Layout): ShardHash = new ShardHash(
    try compiled(keys)
    catch { case NonFatal(e) if !keys.forall(_.isInstanceOf[BoundReference]) => ofValues(keys, e) },
    layout
  )

  /** Makes a hash over the first `fields` fields of rows with the given schema. */
  def ofFields(schema: StructType, fields: Int, layout: Layout): ShardHash =
    apply((0 until fields).map(i => BoundReference(i, schema(i).dataType, schema(i).nullable)), layout)

  private def compiled(keys: Seq[Expression]): ToIntFunction[InternalRow] = {
    val collations = SQLConf.get.getConf(SQLConf.COLLATION_AWARE_HASHING_ENABLED)
    val known = withoutReferences.synchronized(Option(withoutReferences.get((keys, collations))))
    val (generated, references) = known.map(_ -> Array.empty[Any]).getOrElse {
      val (code, references) = generate(keys)
      // Spark caches the classes of equal code.
      val generated = CodeGenerator.compile(code)._1
      if (references.isEmpty)
        withoutReferences.synchronized(withoutReferences.put((keys, collations), generated)): Unit
      (generated, references)
    }
    generated.generate(references).asInstanceOf[ToIntFunction[InternalRow]]
  }

  /**
   * Hash for expressions whose generated code does not compile. They are evaluated one by one, as Spark does in this
   * case.
   */
  private def ofValues(keys: Seq[Expression], why: Throwable): ToIntFunction[InternalRow] = {
    logDebug(s"Penstock: keys are evaluated one by one, because their code does not compile: ${why.getMessage}")
    val hash = compiled(keys.zipWithIndex.map { case (key, i) => BoundReference(i, key.dataType, key.nullable) })
    val values = new GenericInternalRow(keys.size)
    row => {
      keys.indices.foreach(i => values(i) = keys(i).eval(row))
      hash.applyAsInt(values)
    }
  }

  private val MaxKnown = 256

  /**
   * Cache of generated classes that use no object of their expressions, which is the case if all keys are columns.
   * Without the cache every task would generate the code again, which matters for tasks of 10 ms.
   */
  private val withoutReferences =
    new java.util.LinkedHashMap[(Seq[Expression], Boolean), GeneratedClass](16, 0.75f, true) {
      override def removeEldestEntry(eldest: java.util.Map.Entry[(Seq[Expression], Boolean), GeneratedClass]): Boolean =
        size > MaxKnown
    }

  /** Generates the code. Returns it with the objects of the expressions that it uses. */
  private def generate(keys: Seq[Expression]): (CodeAndComment, Array[Any]) = {
    val context = new CodegenContext
    val hash = new CollationAwareMurmur3Hash(keys).genCode(context)
    val body = s"""
      public Object generate(Object[] references) {
        return new SpecificShardHash(references);
      }

      class SpecificShardHash implements ${classOf[ToIntFunction[_]].getName} {
        private final Object[] references;
        ${context.declareMutableStates()}

        public SpecificShardHash(Object[] references) {
          this.references = references;
          ${context.initMutableStates()}
        }

        public int applyAsInt(Object row) {
          InternalRow ${context.INPUT_ROW} = (InternalRow) row;
          ${hash.code}
          return ${hash.value};
        }

        ${context.declareAddedFunctions()}
      }"""
    val code = CodeFormatter.stripOverlappingComments(new CodeAndComment(body, context.getPlaceHolderToComments()))
    (code, context.references.toArray)
  }
}
