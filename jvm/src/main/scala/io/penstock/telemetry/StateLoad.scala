package io.penstock.telemetry

/**
 * What the state of shards amounts to; each array has a number for each of the same shards.
 *
 * @param bytes
 *   memory that it takes
 * @param keys
 *   entries of all column families but those that Spark keeps for itself
 * @param operations
 *   reads, writes and scans in one batch
 */
final case class StateLoad(bytes: Array[Long], keys: Array[Long], operations: Array[Long]) {

  /** Of two stores of the same region, whose last shards may be missing in one. */
  def +(other: StateLoad): StateLoad = StateLoad(
    StateLoad.sum(bytes, other.bytes),
    StateLoad.sum(keys, other.keys),
    StateLoad.sum(operations, other.operations)
  )

  /** Of the first `shards` shards, 0 for those of which nothing is known. */
  def of(shards: Int): StateLoad = StateLoad(
    java.util.Arrays.copyOf(bytes, shards),
    java.util.Arrays.copyOf(keys, shards),
    java.util.Arrays.copyOf(operations, shards)
  )
}

object StateLoad {

  /** Of no shard. */
  val Empty: StateLoad = StateLoad(Array.emptyLongArray, Array.emptyLongArray, Array.emptyLongArray)

  /** Of several stores of one region. */
  def sum(of: Iterable[StateLoad]): StateLoad = of.foldLeft(Empty)(_ + _)

  private def sum(a: Array[Long], b: Array[Long]): Array[Long] = {
    val out = java.util.Arrays.copyOf(a, math.max(a.length, b.length))
    b.indices.foreach(i => out(i) += b(i))
    out
  }
}
