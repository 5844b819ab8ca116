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

import io.penstock.sharding.Layout

/**
 * From a row to its shard: by the hash that Spark itself partitions state by, as a layout has it. An instance is for one
 * thread.
 */
final class ShardHash private (hash: ToIntFunction[InternalRow], layout: Layout) {
  def of(row: InternalRow): Int = layout.shardOf(ofKey(row))

  /** The hash of the row's key. */
  def ofKey(row: InternalRow): Int = hash.applyAsInt(row)
}

object ShardHash extends Logging {

  /**
   * @param keys
   *   bound expressions of the row, of this task alone: some have parsers and writers that they use again for each row
   */
  def apply(keys: Seq[Expression], layout: Layout): ShardHash = new ShardHash(
    try compiled(keys)
    catch { case NonFatal(e) if !keys.forall(_.isInstanceOf[BoundReference]) => ofValues(keys, e) },
    layout
  )

  /** Of the first `fields` fields of rows with the schema. */
  def ofFields(schema: StructType, fields: Int, layout: Layout): ShardHash =
    apply((0 until fields).map(i => BoundReference(i, schema(i).dataType, schema(i).nullable)), layout)

  private def compiled(keys: Seq[Expression]): ToIntFunction[InternalRow] = {
    val collations = SQLConf.get.getConf(SQLConf.COLLATION_AWARE_HASHING_ENABLED)
    val known = withoutReferences.synchronized(Option(withoutReferences.get((keys, collations))))
    val (generated, references) = known.map(_ -> Array.empty[Any]).getOrElse {
      val (code, references) = generate(keys)
      // Spark keeps the classes of equal code.
      val generated = CodeGenerator.compile(code)._1
      if (references.isEmpty)
        withoutReferences.synchronized(withoutReferences.put((keys, collations), generated)): Unit
      (generated, references)
    }
    generated.generate(references).asInstanceOf[ToIntFunction[InternalRow]]
  }

  /** There are expressions of which Spark generates code that does not compile; it then evaluates them one by one. */
  private def ofValues(keys: Seq[Expression], why: Throwable): ToIntFunction[InternalRow] = {
    logDebug(s"Penstock: keys are evaluated one by one, since their code does not compile: ${why.getMessage}")
    val hash = compiled(keys.zipWithIndex.map { case (key, i) => BoundReference(i, key.dataType, key.nullable) })
    val values = new GenericInternalRow(keys.size)
    row => {
      keys.indices.foreach(i => values(i) = keys(i).eval(row))
      hash.applyAsInt(values)
    }
  }

  private val MaxKnown = 256

  /**
   * Classes whose code uses no object of the expressions that it was generated from, as it is where keys are columns: a task
   * that is over in 10 ms does not generate it again.
   */
  private val withoutReferences =
    new java.util.LinkedHashMap[(Seq[Expression], Boolean), GeneratedClass](16, 0.75f, true) {
      override def removeEldestEntry(eldest: java.util.Map.Entry[(Seq[Expression], Boolean), GeneratedClass]): Boolean =
        size > MaxKnown
    }

  /** The code, and the objects of the expressions that it uses. */
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
