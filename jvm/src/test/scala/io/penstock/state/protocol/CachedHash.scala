package io.penstock.state.protocol

/** States are looked up by the hundred thousand, and most of each is shared with the one before. */
trait CachedHash extends Product with Serializable {
  override lazy val hashCode: Int = scala.runtime.ScalaRunTime._hashCode(this)
}
