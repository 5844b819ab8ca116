package io.penstock.telemetry

/**
 * Size and use of the state of shards. Each array has one entry for each shard.
 *
 * @param bytes
 *   Memory of the shard in bytes
 * @param keys
 *   Number of entries in all column families except Spark's internal ones
 * @param operations
 *   Number of reads, writes and scans in one batch
 */
final case class StateLoad(bytes: Array[Long], keys: Array[Long], operations: Array[Long]) {

  /** Sum of two stores of the same region, of which one may have fewer shards. */
  def +(other: StateLoad): StateLoad = StateLoad(
    StateLoad.sum(bytes, other.bytes),
    StateLoad.sum(keys, other.keys),
    StateLoad.sum(operations, other.operations)
  )

  /** Load of the first `shards` shards, 0 for shards that have no entry. */
  def of(shards: Int): StateLoad = StateLoad(
    java.util.Arrays.copyOf(bytes, shards),
    java.util.Arrays.copyOf(keys, shards),
    java.util.Arrays.copyOf(operations, shards)
  )
}

object StateLoad {

  /** Load without any shard. */
  val Empty: StateLoad = StateLoad(Array.emptyLongArray, Array.emptyLongArray, Array.emptyLongArray)

  /** Sum of several stores of one region. */
  def sum(loads: Iterable[StateLoad]): StateLoad = loads.foldLeft(Empty)(_ + _)

  private def sum(a: Array[Long], b: Array[Long]): Array[Long] = {
    val out = java.util.Arrays.copyOf(a, math.max(a.length, b.length))
    b.indices.foreach(i => out(i) += b(i))
    out
  }
}
