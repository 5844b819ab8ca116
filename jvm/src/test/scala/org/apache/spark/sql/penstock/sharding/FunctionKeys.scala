package org.apache.spark.sql.penstock.sharding

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.{LogicalRDD, ProjectExec}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * A key as a task receives it, and rows for which to compute it.
 *
 * @param keys
 *   Key expressions, bound to `rows`
 */
final case class FunctionKey(sql: String, keys: Seq[Expression], rows: Seq[InternalRow])

/**
 * Makes keys from every function in Spark's registry. Uses the documented examples of each function and replaces their
 * literals with columns where the function allows it.
 */
final class FunctionKeys(spark: SparkSession) {
  import FunctionKeys._

  val functions: Seq[String] = FunctionRegistry.builtin.listFunction().map(_.funcName).distinct.sorted

  /** A key made from a function; None if the function has no example or its value cannot be a key. */
  def of(function: String): Option[FunctionKey] =
    examples(function).iterator.flatMap(ofExample).nextOption()

  /** A key made from the only expression that a query selects. */
  def ofExample(sql: String): Option[FunctionKey] = Try(analyzed(sql)).toOption.flatMap(key(sql, _))

  private def examples(function: String): Seq[String] =
    FunctionRegistry.builtin.lookupFunction(FunctionRegistry.builtin.listFunction().find(_.funcName == function).get)
      .toSeq.flatMap(_.getExamples.linesIterator.map(_.trim))
      .collect { case s"> $example;" if example.toUpperCase(java.util.Locale.ROOT).startsWith("SELECT") => example }

  private def analyzed(sql: String): LogicalPlan =
    spark.sessionState.analyzer.executeAndCheck(spark.sessionState.sqlParser.parsePlan(sql), new QueryPlanningTracker)

  private def key(sql: String, plan: LogicalPlan): Option[FunctionKey] = plan match {
    case Project(Seq(Alias(value, _)), _: OneRowRelation) if value.deterministic && value.resolved =>
      val literals = value.collect { case l: Literal if canVary(l.dataType) => l }
      // Some arguments must be constant. In that case each literal is varied alone.
      (literals +: literals.map(Seq(_))).iterator.flatMap(key(sql, value, _)).nextOption()
    case _ => None
  }

  private def key(sql: String, value: Expression, literals: Seq[Literal]): Option[FunctionKey] =
    try {
      val columns = literals.zipWithIndex.map { case (l, i) => StructField(s"c$i", l.dataType, nullable = true) }
      val schema = StructType(columns)
      val attributes = toAttributes(schema)
      val asColumns = value.transform { case l: Literal =>
        literals.indexWhere(_ eq l) match {
          case -1 => l
          case i => attributes(i)
        }
      }
      val rows = (0 until Rows).map(n => InternalRow.fromSeq(literals.map(l => varied(l.value, l.dataType, n))))
      // Not a local relation, because Spark would compute all of it during planning.
      val input = LogicalRDD(attributes, spark.sparkContext.parallelize(rows, 1))(spark)
      val planned = Dataset.ofRows(spark, Project(Seq(Alias(asColumns, "key")()), input)).queryExecution.sparkPlan
      planned.collectFirst { case ProjectExec(Seq(Alias(key, _)), child) =>
        BindReferences.bindReference(key, child.output)
      }.filter(k => k.deterministic && k.references.isEmpty && isKey(k)).map(k => FunctionKey(sql, Seq(k), rows))
    } catch { case NonFatal(_) => None }

  private def isKey(e: Expression): Boolean =
    e.exists(_.isInstanceOf[BoundReference]) && RowOrdering.isOrderable(e.dataType) &&
      new CollationAwareMurmur3Hash(Seq(e)).checkInputDataTypes().isSuccess
}

private object FunctionKeys {
  val Rows = 16

  def canVary(dataType: DataType): Boolean = dataType match {
    case _: StringType | _: NumericType | BooleanType | DateType | TimestampType | TimestampNTZType | BinaryType => true
    case _ => false
  }

  /** Varies the value of an example within the limits of its type. */
  def varied(value: Any, dataType: DataType, n: Int): Any = (value, dataType) match {
    case (null, _) => null
    case (v, _) if n == 0 => v
    case (v: UTF8String, _) =>
      val digits = v.toString.map(c => if (c.isDigit) ('0' + (c - '0' + n) % 10).toChar else c)
      UTF8String.fromString(if (digits == v.toString) s"$digits$n" else digits)
    case (v: Array[Byte], _) => v.map(b => (b + n).toByte)
    case (v: Boolean, _) => v ^ (n % 2 == 1)
    case (v: Byte, _) => (v + n).toByte
    case (v: Short, _) => (v + n).toShort
    case (v: Int, _) => v + n
    case (v: Long, TimestampType | TimestampNTZType) => v + n * 86400000000L
    case (v: Long, _) => v + n
    case (v: Float, _) => v + n
    case (v: Double, _) => v + n
    case (v: Decimal, t: DecimalType) => Decimal((v.toBigDecimal + n).bigDecimal, t.precision, t.scale)
    case (v, _) => v
  }
}
