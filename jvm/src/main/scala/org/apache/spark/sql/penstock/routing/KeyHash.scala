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
 * A key that an application specifies, converted for a region.
 *
 * @param hash
 *   Hash of the key's rows
 * @param text
 *   Text of the key in reports
 */
final private[routing] case class GivenKey(hash: Int, text: String)

/** Computes the hash of a key from the values that an application specifies. */
private[routing] object KeyHash {

  /**
   * @param key
   *   Values of the key, as foldable expressions
   * @param types
   *   Types of the columns that partition the region's rows
   * @return
   *   None if the values are not a key of these types
   */
  def of(key: Seq[Expression], types: Seq[DataType], conf: SQLConf): Option[GivenKey] = SQLConf.withExistingConf(conf) {
    val timeZone = Some(conf.sessionLocalTimeZone)
    val casts = key.zip(types).map { case (value, to) => Cast(value, to, timeZone, EvalMode.ANSI) }
    val fits = key.size == types.size && key.zip(types).forall { case (value, to) => isOf(value.dataType, to) }
    if (!fits || casts.exists(_.checkInputDataTypes().isFailure)) None
    else
      Try(casts.map(_.eval(InternalRow.empty))).toOption.map { values =>
        val columns = types.zipWithIndex.map { case (dataType, i) => BoundReference(i, dataType, nullable = true) }
        val row = new GenericInternalRow(values.toArray[Any])
        GivenKey(ShardHash(columns, Layout(1)).ofKey(row), KeyText.of(columns, row))
      }
  }

  /**
   * Whether a value of type `from` is accepted as a value of type `to`. Integers of another width are accepted,
   * provided that the value fits. A string that looks like a number is not accepted as a number.
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
