package io.penstock.benchmarks

import scala.collection.mutable

/**
 * Lets contenders take turns, a batch each, A B C, then C B A, and so on: what disturbs the machine for longer than a
 * batch disturbs all sides alike.
 */
object Rounds {

  /** Rounds of batches; see `take`. */
  def run(
      contenders: Seq[Contender],
      watch: StageWatch,
      warmUp: Int,
      measured: Int,
      seconds: Int
  ): Seq[(Contender, Seq[Sample])] = take(contenders, warmUp, measured, seconds)(_.every)(_.step(watch))

  /**
   * @param warmUp
   *   rounds whose samples are dropped
   * @param measured
   *   rounds whose samples are kept
   * @param seconds
   *   after which no further round starts, once three are kept: a slow machine gives fewer samples, not a longer wait
   * @param every
   *   a contender takes part in one round out of so many
   * @param turn
   *   of a contender
   * @return
   *   what was kept, per contender, in the order of its turns
   */
  def take[C, S](contenders: Seq[C], warmUp: Int, measured: Int, seconds: Int)(every: C => Int)(
      turn: C => S
  ): Seq[(C, Seq[S])] = {
    val kept = contenders.map(_ -> mutable.ArrayBuffer.empty[S])
    val end = System.nanoTime() + seconds * 1000L * 1000 * 1000
    def inTime = System.nanoTime() < end || kept.exists(_._2.size < 3)
    for (round <- Iterator.range(0, warmUp + measured).takeWhile(_ => inTime)) {
      val order = if (round % 2 == 0) kept else kept.reverse
      for ((contender, samples) <- order if round % every(contender) == 0) {
        val sample = turn(contender)
        if (round >= warmUp) samples += sample
      }
    }
    kept.map { case (c, s) => c -> s.toSeq }
  }
}
