package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, ToPrettyString}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * What people are told of a row's key: what `show` would print, with what `spark.sql.redaction.string.regex` matches left out.
 *
 * @param keys
 *   bound expressions
 * @param shown
 *   whether it may be told; else its hash is
 */
final private class KeyText(keys: Seq[Expression], shown: Boolean) {
  private val pretty = keys.map(ToPrettyString(_, Some(SQLConf.get.sessionLocalTimeZone)))

  /** What Spark leaves out of the plans that it shows. */
  private val redaction = SQLConf.get.stringRedactionPattern

  def of(row: InternalRow, hash: Int): String =
    if (shown) print(row) else KeyText.ofHash(hash)

  private def print(row: InternalRow): String =
    Utils.redact(redaction, pretty.map(_.eval(row)).mkString(", ")).take(KeyText.MaxChars)
}

private[penstock] object KeyText {
  private val MaxChars = 200

  /** What is told of one row's key, where it may be. */
  def of(keys: Seq[Expression], row: InternalRow): String = new KeyText(keys, shown = true).print(row)

  /** What is told of a key that may not be told, or is not known. */
  def ofHash(hash: Int): String = f"hash $hash%08x"
}
