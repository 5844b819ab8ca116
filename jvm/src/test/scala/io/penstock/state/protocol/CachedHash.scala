package io.penstock.state.protocol

/** Caches the hash code. States are looked up hundreds of thousands of times and share most of their parts. */
trait CachedHash extends Product with Serializable {
  override lazy val hashCode: Int = scala.runtime.ScalaRunTime._hashCode(this)
}
