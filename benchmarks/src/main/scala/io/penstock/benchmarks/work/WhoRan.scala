package io.penstock.benchmarks.work

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.Murmur3HashFunction
import org.apache.spark.sql.types.LongType

/**
 * Records which task ran which shard in each batch, as reported by the user's function. Moves are therefore measured
 * independently of Penstock's own reports. Works only for tasks in the driver's JVM.
 */
object WhoRan {
  private val tasks = new ConcurrentHashMap[String, ConcurrentHashMap[Long, Array[Int]]]()

  /** The shard of a key of type bigint: Spark's own hash, modulo the number of shards. */
  def shard(key: Long, shards: Int): Int =
    Math.floorMod(Murmur3HashFunction.hash(key, LongType, 42L).toInt, shards)

  /** Records the task of a key's shard. The task calls it once per batch and key. */
  def note(run: String, key: Long, shards: Int): Unit = {
    val context = TaskContext.get()
    val batch = context.getLocalProperty("streaming.sql.batchId").toLong
    tasks
      .computeIfAbsent(run, _ => new ConcurrentHashMap())
      .computeIfAbsent(batch, _ => Array.fill(shards)(-1))(shard(key, shards)) = context.partitionId()
  }

  /** Share of the shards that changed task since the batch before, among those with rows in both batches. */
  def moved(run: String, batch: Long): Option[Double] = for {
    batches <- Option(tasks.get(run))
    now <- Option(batches.get(batch))
    before <- Option(batches.get(batch - 1))
    both = now.indices.filter(s => now(s) >= 0 && before(s) >= 0) if both.nonEmpty
  } yield both.count(s => now(s) != before(s)).toDouble / both.size
}
