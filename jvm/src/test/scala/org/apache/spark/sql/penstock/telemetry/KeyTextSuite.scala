package org.apache.spark.sql.penstock.telemetry

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BoundReference
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{IntegerType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.scalatest.funsuite.AnyFunSuite

class KeyTextSuite extends AnyFunSuite {
  private val keys =
    Seq(BoundReference(0, StringType, nullable = true), BoundReference(1, IntegerType, nullable = false))

  private def shown(text: String, settings: (String, String)*): String = {
    val conf = new SQLConf
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    SQLConf.withExistingConf(conf)(KeyText.of(keys, InternalRow(UTF8String.fromString(text), 7)))
  }

  test("text that Spark redacts in plans is redacted in keys") {
    val card = "card 4111111111111111"
    assert(shown(card) == s"$card, 7")
    Seq("spark.sql.redaction.string.regex", "spark.redaction.string.regex").foreach { key =>
      assert(shown(card, key -> "[0-9]{16}") == "card *********(redacted), 7")
    }
  }

  test("a long key is truncated after redaction") {
    val key = "k" * 195 + "4111111111111111"
    assert(shown(key, "spark.redaction.string.regex" -> "[0-9]{16}") == "k" * 195 + "*****")
    assert(shown("k" * 1000).length == 200)
  }
}
