package io.penstock.context

/** A part of a [[ProcessContext]]: state or threads of this process that live as long as the application. */
trait Component extends AutoCloseable {

  /**
   * What the component holds now: numbers of entries, bytes, threads and connections, by name. All numbers are 0 after
   * [[close]]; the number of threads may become 0 a little later.
   */
  def held: Map[String, Long]

  /** Releases everything. Called by the context, while the components that were created before are still open. */
  override def close(): Unit
}
