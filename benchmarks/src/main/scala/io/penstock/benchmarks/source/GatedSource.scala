package io.penstock.benchmarks.source

import java.util

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A streaming source of the numbers 0, 1, 2, ... in batches of exactly `rows`, which the tasks make themselves: nothing
 * is read, and no data is shipped with the tasks. A batch exists once its gate has been opened.
 *
 * Options: `gate` (its name), `rows` (per batch), `partitions` (map tasks), `firstBatches` and `firstRows` (how many
 * batches at the beginning have another number of rows, and which).
 */
class GatedSource extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = GatedSource.schema

  override def getTable(schema: StructType, by: Array[Transform], properties: util.Map[String, String]): Table =
    GatedSource.GatedTable
}

object GatedSource {

  /** One column, `value`. */
  val schema: StructType = new StructType().add("value", LongType, nullable = false)

  private object GatedTable extends Table with SupportsRead {
    override def name(): String = "gated"
    override def schema(): StructType = GatedSource.schema
    override def capabilities(): util.Set[TableCapability] = util.EnumSet.of(TableCapability.MICRO_BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
      new Scan {
        override def readSchema(): StructType = GatedSource.schema
        override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream =
          new GatedStream(
            options.get("gate"),
            BatchSizes(options.getLong("firstBatches", 0), options.getLong("firstRows", 0), options.getLong("rows", 0)),
            options.getInt("partitions", 1)
          )
      }
  }
}
