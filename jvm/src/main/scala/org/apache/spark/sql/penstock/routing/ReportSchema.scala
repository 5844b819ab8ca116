package org.apache.spark.sql.penstock.routing

import org.apache.spark.sql.types._

import io.penstock.metrics.{MetricOutput, Metrics}

/** Fields of `observedMetrics["penstock"]`. `docs/progress.md` is generated from it. */
object ReportSchema {

  /** Heavy keys that are told of a region. */
  val MaxKeys = 5

  val key: StructType = new StructType()
    .add("key", StringType, true, "the key, as `show` prints it")
    .add("shard", IntegerType, true, "its shard")
    .add("busyShare", DoubleType, true, "share of the region's busy time; none where that cannot be charged to keys")
    .add("busyShareError", DoubleType, true, "it may be less by so much, the longest reading at least")
    .add("rowsShare", DoubleType, true, "share of the region's rows, estimated")
    .add("rowsShareError", DoubleType, true, "it may be less by so much")

  val pinned: StructType = new StructType()
    .add(
      "key",
      StringType,
      true,
      "the key, as `show` prints it; its hash where it is not known since the query was started"
    )
    .add("shard", IntegerType, true, "its shard")
    .add("rows", LongType, true, "its rows in the batch, over all inputs")
    .add("seen", BooleanType, true, "whether there was a row or state of it since it was pinned")

  val region: StructType = new StructType()
    .add("region", LongType, true, "id of its first stateful operator")
    .add("operators", StringType, true, "its stateful operators")
    .add("routed", BooleanType, true, "whether shards are bound to tasks at the barrier")
    .add("tasks", IntegerType, true, "tasks that run it")
    .add(
      "tasksReason",
      StringType,
      true,
      "with `penstock.tasks=auto`: why so many, or why there is no plan; of a batch that is done again: why not as many as " +
        "the next"
    )
    .add("pinned", IntegerType, true, "keys that have a shard of their own")
    .add("pinnedKeys", ArrayType(pinned), true, "these, by name")
    .add("rows", LongType, true, "rows that came in, over all inputs")
    .add("imbalance", DoubleType, true, "rows of the task with most over the mean of all tasks, as bound")
    .add(
      "expectedImbalance",
      DoubleType,
      true,
      "the same, each row weighted with what its shard's rows have cost so far"
    )
    .add("imbalanceBefore", DoubleType, true, "what that would have been, had the binding of the batch before stayed")
    .add(
      "achievedImbalance",
      DoubleType,
      true,
      "time of the task that took longest over the mean, without waiting and without what kept it from running " +
        "(the kernel's run queue, the collector); none where tasks take less than 10 ms on average, which is too short to compare"
    )
    .add("busyMs", LongType, true, "that time, over all tasks")
    .add(
      "interruptedMs",
      LongType,
      true,
      "time in which tasks were kept from running by the kernel's run queue and by the collector, over all tasks"
    )
    .add(
      "waitMs",
      LongType,
      true,
      "time in which tasks waited for input of others, and for their commits to be on record, over all tasks"
    )
    .add("stateOperations", LongType, true, "reads, writes and scans of its state, over all shards")
    .add(
      "heavyKeys",
      ArrayType(key),
      true,
      s"the keys with most of the busy time, else of the rows, of those whose share is more than its error, at most $MaxKeys"
    )
    .add("executors", IntegerType, true, "executors that its tasks are divided among; none where that is left to Spark")
    .add("homes", StringType, true, "why its shards are on these executors")
    .add("shardsAhead", IntegerType, true, "shards that came to another executor before its tasks wanted them")
    .add(
      "tasksElsewhere",
      IntegerType,
      true,
      "tasks that ran on another executor than the one that has their shards, since it was not free within `spark.locality.wait`"
    )
    .add("shardsMoved", IntegerType, true, "shards that change task against the batch before")
    .add("bytesMoved", LongType, true, "size of the state that came to another executor than before")
    .add(
      "loadMs",
      LongType,
      true,
      "time in which tasks brought state that was not in their executor's memory, over all tasks"
    )
    .add(
      "brought",
      StringType,
      true,
      "how many shards that were, over all stores, by the transport that brought them from another executor's memory, or `checkpoint`"
    )
    .add("decisionMicros", LongType, true, "time to bind shards to tasks")
    .add(
      "decision",
      StringType,
      true,
      "what was decided in words: the policy and the batch that it knows, where shards were placed before the batch; what keeps the batch from being balanced better; and why no other keys are pinned"
    )
    .add("inTurn", StringType, true, "why its tasks run shards, or what feeds them, one after the other")
    .add("reason", StringType, true, "why it is not routed")

  val operator: StructType = new StructType()
    .add("operator", LongType, true, "its id")
    .add("name", StringType, true, "what it does")
    .add("rows", LongType, true, "rows that came into it")
    .add("rowsMs", LongType, true, "time of these that it took, estimated from those that were timed")

  val store: StructType =
    metrics(
      new StructType()
        .add("operator", LongType, true, "id of its operator")
        .add("store", StringType, true, "its name"),
      MetricOutput.Store
    )

  val run: StructType = metrics(new StructType(), MetricOutput.Run)

  val report: StructType = new StructType()
    .add("mode", StringType, true, "`off`, `observe` or `on`")
    .add("routingVersion", LongType, true, "number of the routing version in force")
    .add("shards", IntegerType, true, "shards of the query's state")
    .add("reason", StringType, true, "why Penstock leaves the query alone")
    .add("regions", ArrayType(region), true, "parts of the plan that are routed alike")
    .add("operators", ArrayType(operator), true, "stateful operators of regions that are routed")
    .add("stores", ArrayType(store), true, "state stores, in the checkpoint")
    .add("state", run, true, "state, since the query was started")
    .add("scaling", StringType, true, "with `penstock.latency.targetMs`: why there are so many executors")

  private def metrics(start: StructType, output: MetricOutput): StructType =
    Metrics.at(output).foldLeft(start)((schema, metric) => schema.add(metric.field, LongType, true, metric.meaning))
}
