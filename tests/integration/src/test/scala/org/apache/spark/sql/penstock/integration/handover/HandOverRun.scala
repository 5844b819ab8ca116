package org.apache.spark.sql.penstock.integration.handover

import java.util.SplittableRandom

import scala.util.Random

import org.apache.spark.sql.penstock.integration.harness.{Engine, Event}

/**
 * A query whose foreachBatch function has several actions on one batch, and an executor that ends in one of them.
 * Everything is derived from a seed.
 *
 * @param actions
 *   Number of actions on each batch
 * @param endsIn
 *   Batch in which an executor ends
 * @param slow
 *   Number of the action, from 1, that reads slowly and in which the executor ends; never the first
 * @param executor
 *   Index of the executor that ends, in the order of the executors' names
 * @param lags
 *   Whether the ending executor's tasks are slower than others, so that other executors soon run them as well
 * @param endsAfterMs
 *   Delay of the end after another executor has started to read its committed state
 * @param pausesMs
 *   Pause for each row that is read slowly, by partition
 */
final case class HandOverRun(
    seed: Long,
    query: SlowQuery,
    shards: Int,
    options: Map[String, String],
    actions: Int,
    slow: Int,
    endsIn: Long,
    executor: Int,
    lags: Boolean,
    endsAfterMs: Int,
    pausesMs: Seq[Int],
    inputs: Seq[Seq[Event]]
) {
  def engine: Engine = Engine.penstock(shards, "static").copy(queryOptions = _ => options)

  /**
   * Pauses by partition and executor. `ending` is the executor that ends and `own` are the partitions that it has read.
   */
  def pauses(ending: String, own: Set[Int]): (Int, String) => Int = {
    val (pausesMs, lags) = (this.pausesMs, this.lags)
    (partition, executor) =>
      if (!lags) pausesMs(partition)
      else if (!own(partition)) 1
      else if (executor == ending) 3 * pausesMs(partition)
      else pausesMs(partition)
  }

  override def toString: String =
    s"seed $seed: ${query.name}, $shards shards, ${options.map { case (k, v) => s"$k=$v" }.mkString(", ")}, " +
      s"$actions actions, an executor ends in batch $endsIn, action $slow, after $endsAfterMs ms" +
      (if (lags) ", and lags" else "")
}

object HandOverRun {
  private val Keys = 500
  private val Inputs = 4

  def of(seed: Long): HandOverRun = {
    // For similar seeds the first numbers of java.util.Random are similar, so the seed is mixed first.
    val random = new Random(new SplittableRandom(seed).nextLong())
    def pick[A](from: Seq[A]): A = from(random.nextInt(from.size))
    val tasks = pick(Seq(6, 8, 10))
    val actions = pick(Seq(2, 2, 3))
    val lags = random.nextInt(5) > 0
    HandOverRun(
      seed,
      query = pick(SlowQuery.all),
      shards = pick(Seq(16, 32)),
      options = Map(
        "penstock.policy" -> pick(Seq("static", "hybrid", s"chaos(${random.nextInt(1000)})")),
        "penstock.tasks" -> tasks.toString,
        "penstock.replicas" -> pick(Seq("1", "1", "2"))
      ),
      actions,
      slow = if (actions == 2) 2 else pick(Seq(2, 3)),
      endsIn = 1L + random.nextInt(Inputs - 2),
      executor = random.nextInt(2),
      lags,
      endsAfterMs = random.nextInt(if (lags) 200 else 50),
      pausesMs = Seq.fill(tasks)(if (!lags && random.nextBoolean()) random.nextInt(3) else 15 + random.nextInt(20)),
      inputs = Seq.tabulate(Inputs)(input(random, _))
    )
  }

  /** Most keys, some of them several times. The last input has all keys, so that it shows the complete state. */
  private def input(random: Random, number: Int): Seq[Event] = {
    val keys = (0L until Keys.toLong).filter(_ => number == Inputs - 1 || random.nextInt(10) < 7)
    random.shuffle(keys ++ keys.filter(_ => random.nextInt(4) == 0)).map(key =>
      Event(key, random.nextInt(1000).toLong, number.toLong, number.toLong)
    )
  }
}
