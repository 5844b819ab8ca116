package io.penstock.benchmarks

import scala.collection.mutable

/**
 * Lets contenders take turns with a batch each: A B C, then C B A, and so on. A disturbance of the machine that lasts
 * longer than a batch then affects all sides alike.
 */
object Rounds {

  /** Runs rounds of batches; see `take`. */
  def run(
      contenders: Seq[Contender],
      watch: StageWatch,
      warmUp: Int,
      measured: Int,
      seconds: Int
  ): Seq[(Contender, Seq[Sample])] = take(contenders, warmUp, measured, seconds)(_.every)(_.step(watch))

  /**
   * Runs rounds in which each contender has a turn.
   *
   * @param warmUp
   *   number of rounds whose samples are dropped
   * @param measured
   *   number of rounds whose samples are kept
   * @param seconds
   *   time after which no further round starts once three samples are kept, so that a slow machine gives fewer samples
   *   instead of running longer
   * @param every
   *   function that returns for a contender the number of rounds of which it takes part in one
   * @param turn
   *   function that runs a turn of a contender and returns its sample
   * @return
   *   samples of each contender, in the order of its turns
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
