package org.apache.spark.sql.penstock.routing

import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Cast, EvalMode, Expression, GenericInternalRow}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.sharding.ShardHash
import org.apache.spark.sql.types.DataType

import io.penstock.sharding.Layout

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
  def of(key: Seq[Expression], types: Seq[DataType], conf: SQLConf): Option[Int] = SQLConf.withExistingConf(conf) {
    val timeZone = Some(conf.sessionLocalTimeZone)
    val casts = key.zip(types).map { case (value, to) => Cast(value, to, timeZone, EvalMode.ANSI) }
    if (key.size != types.size || casts.exists(_.checkInputDataTypes().isFailure)) None
    else
      Try(casts.map(_.eval(InternalRow.empty))).toOption.map { values =>
        val columns = types.zipWithIndex.map { case (of, i) => BoundReference(i, of, nullable = true) }
        ShardHash(columns, Layout(1)).ofKey(new GenericInternalRow(values.toArray[Any]))
      }
  }
}
