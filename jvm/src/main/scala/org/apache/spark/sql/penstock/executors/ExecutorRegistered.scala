package org.apache.spark.sql.penstock.executors

import org.apache.spark.rpc.RpcEndpointRef

/**
 * Registers the endpoint of an executor at the driver.
 *
 * @param executor
 *   The executor, as a task location
 * @param endpoint
 *   Reference to the endpoint
 */
final case class ExecutorRegistered(executor: String, endpoint: RpcEndpointRef)
