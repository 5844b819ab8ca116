package org.apache.spark.sql.penstock.shims

/** What this Spark version requires of queries in Real-Time Mode. */
object RealTimeMode {

  /**
   * Whether Spark refuses a query in Real-Time Mode if its session sets a provider other than RocksDB. Spark checks
   * this before an extension sees the query, and also for queries without state.
   */
  val refusesOtherProviders: Boolean = true
}
