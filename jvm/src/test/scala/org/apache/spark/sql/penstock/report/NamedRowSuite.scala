package org.apache.spark.sql.penstock.report

import org.apache.spark.sql.types.{IntegerType, StringType, StructType}

import org.scalatest.funsuite.AnyFunSuite

class NamedRowSuite extends AnyFunSuite {
  private val schema = new StructType().add("name", StringType).add("size", IntegerType).add("why", StringType)

  test("values are placed by name, and an empty Option is null") {
    val row = NamedRow.of(schema)("why" -> None, "size" -> Some(3), "name" -> "a")
    assert(row.toSeq == Seq[Any]("a", 3, null) && row.schema == schema)
  }

  test("a missing, an unknown and a repeated field are errors that name the field") {
    def failure(values: (String, Any)*) =
      intercept[IllegalArgumentException](NamedRow.of(schema)(values: _*)).getMessage
    assert(failure("name" -> "a", "size" -> 3).contains("fields without a value: [why]"))
    assert(failure("name" -> "a", "size" -> 3, "why" -> None, "rows" -> 1).contains("repeated fields: [rows]"))
    assert(failure("name" -> "a", "size" -> 3, "why" -> None, "size" -> 1).contains("repeated fields: [size]"))
  }
}
