package io.penstock.benchmarks.source

import java.util

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A streaming source of the numbers 0, 1, 2, and so on. The tasks generate the numbers, so nothing is read and no data
 * is sent with the tasks.
 */
abstract class NumberSource extends TableProvider {
  protected def stream(options: CaseInsensitiveStringMap): MicroBatchStream

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = NumberSource.schema

  override def getTable(schema: StructType, by: Array[Transform], properties: util.Map[String, String]): Table =
    new Table with SupportsRead {
      override def name(): String = "numbers"
      override def schema(): StructType = NumberSource.schema
      override def capabilities(): util.Set[TableCapability] = util.EnumSet.of(TableCapability.MICRO_BATCH_READ)
      override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
        new Scan {
          override def readSchema(): StructType = NumberSource.schema
          override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = stream(options)
        }
    }
}

object NumberSource {

  /** Schema with one column, `value`. */
  val schema: StructType = new StructType().add("value", LongType, nullable = false)
}
