package io.penstock.benchmarks.work

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.Murmur3HashFunction
import org.apache.spark.sql.types.LongType

/**
 * Which task ran which shard in which batch, noted by the user's function itself: what the benchmark says about moves
 * does not come from who decides them. For tasks in the driver's JVM.
 */
object WhoRan {
  private val tasks = new ConcurrentHashMap[String, ConcurrentHashMap[Long, Array[Int]]]()

  /** The shard of a key of type bigint: Spark's own hash, modulo the number of shards. */
  def shard(key: Long, shards: Int): Int =
    Math.floorMod(Murmur3HashFunction.hash(key, LongType, 42L).toInt, shards)

  /** Called once for every key of a batch, by the task that has it. */
  def note(run: String, key: Long, shards: Int): Unit = {
    val context = TaskContext.get()
    val batch = context.getLocalProperty("streaming.sql.batchId").toLong
    tasks
      .computeIfAbsent(run, _ => new ConcurrentHashMap())
      .computeIfAbsent(batch, _ => Array.fill(shards)(-1))(shard(key, shards)) = context.partitionId()
  }

  /** Share of the shards, among those with rows in both, that another task ran in this batch than in the one before. */
  def moved(run: String, batch: Long): Option[Double] = for {
    batches <- Option(tasks.get(run))
    now <- Option(batches.get(batch))
    before <- Option(batches.get(batch - 1))
    both = now.indices.filter(s => now(s) >= 0 && before(s) >= 0) if both.nonEmpty
  } yield both.count(s => now(s) != before(s)).toDouble / both.size
}
