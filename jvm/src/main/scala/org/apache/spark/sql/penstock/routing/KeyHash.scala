package org.apache.spark.sql.penstock.routing

import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Cast, EvalMode, Expression, GenericInternalRow}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.penstock.telemetry.KeyText
import org.apache.spark.sql.types._

import io.penstock.sharding.Layout

/**
 * A key as an application gives it, in the terms of a region.
 *
 * @param hash
 *   that its rows have
 * @param text
 *   as it is told in reports
 */
final private[routing] case class GivenKey(hash: Int, text: String)

/** From the values of a key, as an application gives them, to the hash that its rows have. */
private[routing] object KeyHash {

  /**
   * @param key
   *   foldable expressions
   * @param types
   *   of the columns that a region's rows are partitioned by
   * @return
   *   None where the values are no key of these types
   */
  def of(key: Seq[Expression], types: Seq[DataType], conf: SQLConf): Option[GivenKey] = SQLConf.withExistingConf(conf) {
    val timeZone = Some(conf.sessionLocalTimeZone)
    val casts = key.zip(types).map { case (value, to) => Cast(value, to, timeZone, EvalMode.ANSI) }
    val fits = key.size == types.size && key.zip(types).forall { case (value, to) => isOf(value.dataType, to) }
    if (!fits || casts.exists(_.checkInputDataTypes().isFailure)) None
    else
      Try(casts.map(_.eval(InternalRow.empty))).toOption.map { values =>
        val columns = types.zipWithIndex.map { case (of, i) => BoundReference(i, of, nullable = true) }
        val row = new GenericInternalRow(values.toArray[Any])
        GivenKey(ShardHash(columns, Layout(1)).ofKey(row), KeyText.of(columns, row))
      }
  }

  /**
   * Whether a value of a type is one of the other: a number of a wider or a narrower integer, if it fits, is; a text that
   * reads like a number is not.
   */
  private def isOf(from: DataType, to: DataType): Boolean = (from, to) match {
    case (NullType, _) => true
    case (_: StringType, _: StringType) => true
    case (_: StringType, _) | (_, _: StringType) => false
    case (_: IntegralType, _: IntegralType) => true
    case (FloatType | DoubleType, FloatType | DoubleType) => true
    case (_: DecimalType, _: DecimalType) => true
    case _ => Cast.canUpCast(from, to)
  }
}
