package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, ToPrettyString}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * Text of a row's key in reports: what `show` prints, with matches of `spark.sql.redaction.string.regex` redacted.
 *
 * @param keys
 *   Bound expressions of the key
 * @param shown
 *   Whether the key may be shown; otherwise its hash is shown
 */
final private class KeyText(keys: Seq[Expression], shown: Boolean) {
  private val pretty = keys.map(ToPrettyString(_, Some(SQLConf.get.sessionLocalTimeZone)))

  /** The pattern that Spark redacts in the plans that it shows. */
  private val redaction = SQLConf.get.stringRedactionPattern

  def of(row: InternalRow, hash: Int): String =
    if (shown) print(row) else KeyText.ofHash(hash)

  private def print(row: InternalRow): String =
    Utils.redact(redaction, pretty.map(_.eval(row)).mkString(", ")).take(KeyText.MaxChars)
}

private[penstock] object KeyText {
  private val MaxChars = 200

  /** Text of the key of a row, for keys that may be shown. */
  def of(keys: Seq[Expression], row: InternalRow): String = new KeyText(keys, shown = true).print(row)

  /** Text of a key that may not be shown or is unknown. */
  def ofHash(hash: Int): String = f"hash $hash%08x"
}
