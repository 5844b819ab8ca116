package io.penstock.benchmarks

/** State that is there before anything is measured. */
object LoadedKeys {

  /** A prime that divides no number of keys that is used here: so many numbers in a row are as many keys, far apart. */
  val Stride = 7368787L

  /** Runs the batches that fill the state. */
  def load(contender: Contender, batches: Int, watch: StageWatch): Contender = {
    (0 until batches).foreach(_ => contender.step(watch))
    contender
  }
}
