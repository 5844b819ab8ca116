package io.penstock.benchmarks

import scala.collection.mutable

/**
 * Lets contenders take turns, a batch each, A B C, then C B A, and so on: what disturbs the machine for longer than a
 * batch disturbs all sides alike.
 */
object Rounds {

  /**
   * @param warmUp
   *   rounds whose samples are dropped
   * @param measured
   *   rounds whose samples are kept
   * @param seconds
   *   after which no further round starts, once three are kept: a slow machine gives fewer samples, not a longer wait
   * @return
   *   what was kept, per contender, in the order of its batches
   */
  def run(
      contenders: Seq[Contender],
      watch: StageWatch,
      warmUp: Int,
      measured: Int,
      seconds: Int
  ): Seq[(Contender, Seq[Sample])] = {
    val kept = contenders.map(_ -> mutable.ArrayBuffer.empty[Sample])
    val end = System.nanoTime() + seconds * 1000L * 1000 * 1000
    def inTime = System.nanoTime() < end || kept.exists(_._2.size < 3)
    for (round <- Iterator.range(0, warmUp + measured).takeWhile(_ => inTime)) {
      val turn = if (round % 2 == 0) kept else kept.reverse
      for ((contender, samples) <- turn if round % contender.every == 0) {
        val sample = contender.step(watch)
        if (round >= warmUp) samples += sample
      }
    }
    kept.map { case (c, s) => c -> s.toSeq }
  }
}
