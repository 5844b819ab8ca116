package io.penstock.benchmarks.source

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Numbers in batches of exactly `rows`. A batch is available once its gate has been opened.
 *
 * Options: `gate` (name of the gate), `rows` (rows per batch), `partitions` (number of map tasks), `firstBatches` and
 * `firstRows` (number of batches at the beginning with another number of rows, and that number).
 */
class GatedSource extends NumberSource {
  override protected def stream(options: CaseInsensitiveStringMap): MicroBatchStream = {
    val (gate, partitions) = (options.get("gate"), options.getInt("partitions", 1))
    val sizes =
      BatchSizes(options.getLong("firstBatches", 0), options.getLong("firstRows", 0), options.getLong("rows", 0))
    new NumberStream(partitions) {
      // Offsets are numbers of batches.
      override protected def newest: Long = Gate.batches(gate)
      override protected def rowsUntil(offset: Long): Long = sizes.ofBatches(offset)
    }
  }
}
