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
   * @return
   *   what was kept, per contender, in the order of its batches
   */
  def run(contenders: Seq[Contender], watch: StageWatch, warmUp: Int, measured: Int): Seq[(Contender, Seq[Sample])] = {
    val kept = contenders.map(_ -> mutable.ArrayBuffer.empty[Sample])
    for (round <- 0 until warmUp + measured) {
      val turn = if (round % 2 == 0) kept else kept.reverse
      for ((contender, samples) <- turn if round % contender.every == 0) {
        val sample = contender.step(watch)
        if (round >= warmUp) samples += sample
      }
    }
    kept.map { case (c, s) => c -> s.toSeq }
  }
}
