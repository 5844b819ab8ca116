package io.penstock.benchmarks.source

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Numbers that arrive at a fixed rate. A batch has all numbers that have arrived since the batch before.
 *
 * Options: `arrivals` (name of the arrivals), `partitions` (number of map tasks).
 */
class ArrivingSource extends NumberSource {
  override protected def stream(options: CaseInsensitiveStringMap): MicroBatchStream = {
    val arrivals = options.get("arrivals")
    new NumberStream(options.getInt("partitions", 1)) {
      // Offsets are numbers of rows.
      override protected def newest: Long = Arrivals.soFar(arrivals)
      override protected def rowsUntil(offset: Long): Long = offset
    }
  }
}
