package org.apache.spark.sql.penstock.report

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.types.StructType

/** Makes rows of the record that [[ReportSchema]] describes from the names of its fields. */
object NamedRow {

  /**
   * A row with a value for each field of the schema, in any order.
   *
   * @param values
   *   value of each field; an empty Option becomes null
   * @throws IllegalArgumentException
   *   if a field is missing, unknown or given twice
   */
  def of(schema: StructType)(values: (String, Any)*): Row = {
    val names = values.map(_._1)
    val (missing, unknown) = (schema.fieldNames.diff(names), names.diff(schema.fieldNames))
    require(
      missing.isEmpty && unknown.isEmpty,
      s"fields without a value: [${missing.mkString(", ")}], unknown or repeated fields: [${unknown.mkString(", ")}]"
    )
    val ordered = new Array[Any](schema.length)
    values.foreach { case (name, value) =>
      ordered(schema.fieldIndex(name)) = value match {
        case option: Option[_] => option.orNull[Any]
        case other => other
      }
    }
    new GenericRowWithSchema(ordered, schema)
  }
}
