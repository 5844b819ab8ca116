package org.apache.spark.sql.penstock.integration.harness

import org.apache.spark.sql.Row

/** Renders rows as text for comparison: null is not "null", -0.0 is not 0.0, and maps have no order. */
object Rendering {
  def of(row: Row): String = row.toSeq.map(value).mkString("[", ", ", "]")

  private def value(any: Any): String = any match {
    case null => "NULL"
    case text: String => s"\"$text\""
    case row: Row => of(row)
    case bytes: Array[Byte] => bytes.map("%02x".format(_)).mkString("0x", "", "")
    case map: scala.collection.Map[_, _] =>
      map.toSeq.map { case (k, v) => s"${value(k)} -> ${value(v)}" }.sorted.mkString("{", ", ", "}")
    case items: scala.collection.Seq[_] => items.map(value).mkString("(", ", ", ")")
    case other => other.toString
  }
}
