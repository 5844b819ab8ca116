package org.apache.spark.sql.penstock.integration.harness

/**
 * The two engines that a test compares.
 *
 * With `-Dpenstock.test.subject=stock`, plain Spark with another number of partitions takes the place of Penstock.
 * Every case must pass there as well; otherwise the case is not deterministic.
 */
final case class EnginePair(reference: Engine, subject: Engine)

object EnginePair {
  private val subjectIsStock = sys.props.get("penstock.test.subject").contains("stock")

  /**
   * @param stock
   *   Spark's provider to compare with
   * @param shards
   *   Number of shards of the Penstock run
   * @param seed
   *   Seed of the number of tasks and the binding of each batch
   */
  def of(stock: String, shards: Int, seed: Long): EnginePair = EnginePair(
    Engine.stock(stock, 3),
    if (subjectIsStock) Engine.stock(stock, 2) else Engine.penstock(shards, seed)
  )
}
