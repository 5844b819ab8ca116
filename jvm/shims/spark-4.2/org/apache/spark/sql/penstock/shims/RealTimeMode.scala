package org.apache.spark.sql.penstock.shims

/** What Spark asks of queries in Real-Time Mode. */
object RealTimeMode {

  /**
   * Whether Spark refuses such a query in a session that names any provider but RocksDB's. It does so before an extension
   * sees the query, and whether the query has state or not.
   */
  val refusesOtherProviders: Boolean = false
}
