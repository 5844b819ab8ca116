package org.apache.spark.sql.penstock.sharding

import java.util.function.ToIntFunction

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeAndComment,
  CodeFormatter,
  CodeGenerator,
  CodegenContext,
  GeneratedClass
}
import org.apache.spark.sql.catalyst.expressions.{BoundReference, CollationAwareMurmur3Hash, Expression}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import io.penstock.sharding.Layout

/**
 * From a row to its shard: by the hash that Spark itself partitions state by, as a layout has it. The code is
 * generated once per JVM for equal expressions: a task that is over in 10 ms does not pay for it again. An instance is
 * for one thread.
 */
final class ShardHash private (hash: ToIntFunction[InternalRow], layout: Layout) {
  def of(row: InternalRow): Int = layout.shardOf(ofKey(row))

  /** The hash of the row's key. */
  def ofKey(row: InternalRow): Int = hash.applyAsInt(row)
}

object ShardHash {

  /**
   * @param keys
   *   bound expressions of the row
   */
  def apply(keys: Seq[Expression], layout: Layout): ShardHash = {
    val collations = SQLConf.get.getConf(SQLConf.COLLATION_AWARE_HASHING_ENABLED)
    val code = compiled.synchronized {
      Option(compiled.get((keys, collations))).getOrElse {
        val made = compile(keys)
        compiled.put((keys, collations), made)
        made
      }
    }
    new ShardHash(code.instance(), layout)
  }

  /** Of the first `fields` fields of rows with the schema. */
  def ofFields(schema: StructType, fields: Int, layout: Layout): ShardHash =
    apply((0 until fields).map(i => BoundReference(i, schema(i).dataType, schema(i).nullable)), layout)

  final private class Code(generated: GeneratedClass, references: Array[Any]) {
    def instance(): ToIntFunction[InternalRow] =
      generated.generate(references).asInstanceOf[ToIntFunction[InternalRow]]
  }

  private val MostCompiled = 256

  private val compiled = new java.util.LinkedHashMap[(Seq[Expression], Boolean), Code](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[(Seq[Expression], Boolean), Code]): Boolean =
      size > MostCompiled
  }

  private def compile(keys: Seq[Expression]): Code = {
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
    new Code(CodeGenerator.compile(code)._1, context.references.toArray)
  }
}
