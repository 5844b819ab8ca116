package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, ToPrettyString}
import org.apache.spark.sql.internal.SQLConf

/**
 * The key of a row as `show` would print it.
 *
 * @param keys
 *   bound expressions
 */
final private class KeyText(keys: Seq[Expression]) {
  private val pretty = keys.map(ToPrettyString(_, Some(SQLConf.get.sessionLocalTimeZone)))

  def of(row: InternalRow): String = pretty.map(_.eval(row)).mkString(", ").take(KeyText.MostChars)
}

private object KeyText {
  val MostChars = 200
}
