package org.apache.spark.sql.penstock.integration.harness

/**
 * The two engines that a test compares.
 *
 * `-Dpenstock.test.subject=stock` puts another number of partitions of plain Spark in Penstock's place: every case must pass
 * there too, or it is the case that is not deterministic.
 */
final case class EnginePair(reference: Engine, subject: Engine)

object EnginePair {
  private val subjectIsStock = sys.props.get("penstock.test.subject").contains("stock")

  /**
   * @param stock
   *   Spark's provider to compare with
   * @param shards
   *   of the Penstock run
   * @param seed
   *   of the number of tasks and the binding of each batch
   */
  def of(stock: String, shards: Int, seed: Long): EnginePair = EnginePair(
    Engine.stock(stock, 3),
    if (subjectIsStock) Engine.stock(stock, 2) else Engine.penstock(shards, seed)
  )
}
