package org.apache.spark.sql.penstock.report

import org.apache.spark.sql.types._

import io.penstock.metrics.{MetricOutput, Metrics}

/** Fields of `observedMetrics["penstock"]`. `docs/progress.md` is generated from this schema. */
object ReportSchema {

  /** Maximum number of heavy keys that are reported for a region. */
  val MaxKeys = 5

  val key: StructType = new StructType()
    .add("key", StringType, true, "the key, as `show` prints it")
    .add("shard", IntegerType, true, "shard of the key")
    .add(
      "busyShare",
      DoubleType,
      true,
      "share of the region's busy time that is charged to the key, estimated; null where time cannot be charged to keys"
    )
    .add(
      "busyShareError",
      DoubleType,
      true,
      "upper bound of the overestimate of `busyShare`; includes the longest time reading of the key"
    )
    .add("rowsShare", DoubleType, true, "share of the region's rows that have the key, estimated")
    .add("rowsShareError", DoubleType, true, "upper bound of the overestimate of `rowsShare`")

  val pinned: StructType = new StructType()
    .add(
      "key",
      StringType,
      true,
      "the key, as `show` prints it; the hash of the key if it was neither pinned by the application nor heavy since " +
        "the query was started"
    )
    .add("shard", IntegerType, true, "shard of the key")
    .add("rows", LongType, true, "number of rows of the key in the batch, over all inputs")
    .add("seen", BooleanType, true, "whether a row or state of the key was seen since it was pinned")

  val region: StructType = new StructType()
    .add("region", LongType, true, "id of the region: the smallest id of its stateful operators")
    .add("operators", StringType, true, "names of the region's stateful operators")
    .add("routed", BooleanType, true, "whether the region's shards are bound to tasks at the barrier")
    .add("tasks", IntegerType, true, "number of tasks that run the region")
    .add(
      "tasksReason",
      StringType,
      true,
      "with `penstock.tasks=auto`: why the region has this number of tasks, or why there is no plan; for a batch " +
        "that is run again: why its number of tasks differs from that of the next batch"
    )
    .add("pinned", IntegerType, true, "number of pinned keys: keys that have a shard of their own")
    .add("pinnedKeys", ArrayType(pinned), true, "the pinned keys of the region, by shard")
    .add("rows", LongType, true, "number of rows that the region received, over all inputs")
    .add(
      "imbalance",
      DoubleType,
      true,
      "rows of the busiest task over the mean of all tasks, under the binding decided for the batch; 1.0 is even"
    )
    .add(
      "expectedImbalance",
      DoubleType,
      true,
      "expected load of the busiest task over the mean of all tasks, under the binding decided for the batch; each " +
        "row is weighted with the cost of a row of its shard, as known from earlier batches"
    )
    .add(
      "imbalanceBefore",
      DoubleType,
      true,
      "the expected imbalance that this batch would have had under the binding of the batch before"
    )
    .add(
      "achievedImbalance",
      DoubleType,
      true,
      "longest task time over the mean task time, without `waitMs` and `interruptedMs`; null where tasks take less " +
        "than 10 ms on average, which is too short to compare"
    )
    .add(
      "busyMs",
      LongType,
      true,
      "sum over all tasks of the task time, without `waitMs` and `interruptedMs`"
    )
    .add(
      "interruptedMs",
      LongType,
      true,
      "sum over all tasks of the time in which the task was ready but could not run: it was in the kernel's run " +
        "queue, or the garbage collector had stopped the JVM"
    )
    .add(
      "waitMs",
      LongType,
      true,
      "sum over all tasks of the time in which the task waited for input of other tasks, or for its commit to be " +
        "recorded"
    )
    .add("stateOperations", LongType, true, "number of reads, writes and scans of the region's state, over all shards")
    .add(
      "heavyKeys",
      ArrayType(key),
      true,
      "the keys with the largest share of the busy time, or of the rows where time cannot be charged to keys; only " +
        s"keys whose share is larger than its error; at most $MaxKeys"
    )
    .add(
      "executors",
      IntegerType,
      true,
      "number of executors that the region's tasks are divided among; null where this is left to Spark"
    )
    .add("homes", StringType, true, "why the region's shards are on these executors")
    .add(
      "shardsAhead",
      IntegerType,
      true,
      "number of shards that were sent to another executor before its tasks needed them"
    )
    .add(
      "tasksElsewhere",
      IntegerType,
      true,
      "number of tasks that ran on another executor than the planned one, because that one was not free within " +
        "`spark.locality.wait`"
    )
    .add("shardsMoved", IntegerType, true, "number of shards that are bound to another task than in the batch before")
    .add("bytesMoved", LongType, true, "size of the state that is on another executor than in the batch before")
    .add(
      "loadMs",
      LongType,
      true,
      "sum over all tasks of the time in which the task loaded state that was not in its executor's memory"
    )
    .add(
      "brought",
      StringType,
      true,
      "number of shards that tasks loaded, over all stores, by source: the transport that brought them from another " +
        "executor's memory, `checkpoint`, or `changes` where only the changes since an earlier batch were read from " +
        "the checkpoint"
    )
    .add("decisionMicros", LongType, true, "time to bind shards to tasks, in microseconds")
    .add(
      "decision",
      StringType,
      true,
      "the decision for the batch: the placement policy and the newest batch that its plan is based on, where shards " +
        "are placed between batches; how balanced the batch is expected to be, and what prevents a better balance; " +
        "why no other keys are pinned"
    )
    .add(
      "inTurn",
      StringType,
      true,
      "why the region's tasks run their shards, or read their inputs, one shard after the other"
    )
    .add("reason", StringType, true, "why the region is not routed")

  val operator: StructType = new StructType()
    .add("operator", LongType, true, "id of the operator")
    .add("name", StringType, true, "name of the operator, as in Spark's progress")
    .add("rows", LongType, true, "number of rows that the operator received")
    .add(
      "rowsMs",
      LongType,
      true,
      "sum over all tasks of the time that the operator spent on these rows, estimated from the rows that were timed"
    )

  val store: StructType =
    metrics(
      new StructType()
        .add("operator", LongType, true, "id of the operator that the store belongs to")
        .add("store", StringType, true, "name of the store"),
      MetricOutput.Store
    )

  val run: StructType = metrics(new StructType(), MetricOutput.Run)

  val report: StructType = new StructType()
    .add("mode", StringType, true, "`off`, `observe` or `on`")
    .add("routingVersion", LongType, true, "number of the routing version that the batch uses")
    .add("shards", IntegerType, true, "number of base shards of the query's state")
    .add("reason", StringType, true, "why Penstock does not change the query")
    .add("regions", ArrayType(region), true, "regions of the plan, each bound to tasks by itself")
    .add("operators", ArrayType(operator), true, "stateful operators of the routed regions")
    .add("stores", ArrayType(store), true, "state stores of the query, and their content in the checkpoint")
    .add("state", run, true, "work on the files of the state since the query was started")
    .add("scaling", StringType, true, "with `penstock.latency.targetMs`: why there is this number of executors")

  private def metrics(start: StructType, output: MetricOutput): StructType =
    Metrics.at(output).foldLeft(start)((schema, metric) => schema.add(metric.field, LongType, true, metric.meaning))
}
