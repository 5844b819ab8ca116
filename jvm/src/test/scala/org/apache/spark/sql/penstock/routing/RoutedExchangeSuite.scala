package org.apache.spark.sql.penstock.routing

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted}
import org.apache.spark.shuffle.sort.SerializedShuffleHandle
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.ExplainUtils
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.penstock.lease._

import io.penstock.routing.{Binder, Binding, ChaosBinder, StaticBinder, StickyBinder}

/** The routed exchange alone, in batch plans. */
class RoutedExchangeSuite extends RoutedExchanges {
  Seq("true", "false").foreach { batchFetch =>
    test(s"rows are those of Spark's exchange, whatever the binding (fetch in batch: $batchFetch)") {
      spark.conf.set("spark.sql.adaptive.fetchShuffleBlocksInBatch", batchFetch)
      try {
        check(1000, maps = 1, tasks = 5, StaticBinder)
        check(1000, maps = 3, tasks = 1, new StickyBinder())
        check(1000, maps = 3, tasks = 5, new ChaosBinder(1, 2, 3))
      } finally spark.conf.unset("spark.sql.adaptive.fetchShuffleBlocksInBatch")
    }
  }

  test("runs with gaps do not read the gaps") {
    // Every second shard is a gap.
    val alternate: Binder = (rows, tasks, _) => Array.tabulate(rows.length)(_ % tasks)
    check(2000, 3, 2, alternate)
  }

  test("no rows, no map tasks, and more tasks than shards with rows are supported") {
    check(0, 1, 3, new StickyBinder())
    check(3, 2, 16, new StickyBinder())
    val r = routing(3, new StickyBinder())
    val none = spark.createDataFrame(java.util.List.of[org.apache.spark.sql.Row](), input(1, 1).schema)
      .repartition(shards, column("k"))
    assert(run(routed(none, r, 3)).isEmpty)
  }

  test("the serialized writer is used, with spare blocks for shards that do not exist") {
    val plan = routed(input(10, 1), routing(2, StaticBinder), 2)
    val exchange = plan.collectFirst { case e: RoutedExchange => e }.get
    assert(exchange.numPartitions == 201)
    assert(exchange.shuffleDependency.shuffleHandle.isInstanceOf[SerializedShuffleHandle[_, _]])
    assert(!exchange.shuffleDependency.shuffleMergeAllowed)
  }

  test("each task holds the lease of its shards while it runs, and releases it") {
    val r = routing(3, new ChaosBinder(1, 2, 3))
    val plan = routed(input(500, 2), r, 3)
    val held = plan.execute().mapPartitions { _ =>
      Iterator((TaskContext.getPartitionId(), TaskLeases.find(0).get.shards.toSeq))
    }.collect().toMap
    val binding = r.barrier.decision.get.binding
    assert(held == (0 until 3).map(t => t -> binding.shardsOf(t).toSeq).toMap)
    spark.sparkContext.listenerBus.waitUntilEmpty()
    assert(TaskLeases.size == 0)
  }

  test("a second action uses the same binding, which is decided only once") {
    val r = routing(4, new ChaosBinder(5, 5, 5))
    val plan = routed(input(300, 2), r, 4)
    val first = run(plan)
    val decision = r.barrier.decision.get
    assert(run(plan).sorted == first.sorted)
    assert(r.barrier.decision.get eq decision)
  }

  test("nothing is decided before the barrier, by planning or by asking for locations") {
    val r = routing(4, StaticBinder)
    val rdd = routed(input(300, 2), r, 4).execute()
    assert(spark.sparkContext.env.closureSerializer.newInstance().serialize(rdd).limit() > 0)
    rdd.partitions.foreach(p => assert(rdd.preferredLocations(p).isEmpty))
    assert(r.barrier.decision.isEmpty && !r.barrier.ready)
    rdd.count()
    assert(r.barrier.decision.get.rows.sum == 300)
  }

  test("in observe mode tasks run by shard, and the proposed binding is available") {
    val r = routing(2, new StickyBinder(), observe = true)
    val out = run(routed(input(300, 2), r, shards))
    val decision = r.barrier.decision.get
    assert(decision.binding == Binding.identity(shards) && decision.proposed.tasks == 2)
    assert(out.map(_._1).distinct.size > 2)
  }

  test("both inputs of a join share the binding") {
    val r = routing(3, new ChaosBinder(9, 9, 9))
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    val left = spark.range(0, 400).selectExpr("id % 50 as k", "id as a").repartition(shards, column("k"))
    val right = spark.range(0, 100).selectExpr("id % 60 as k", "id as b").repartition(shards, column("k"))
    val join = left.join(right, "k").selectExpr("k", "cast(a * 1000 + b as string)")
    val plan = routed(join, r, 3)
    assert(plan.collect { case e: RoutedExchange => e }.size == 2)
    assert(run(plan).map(x => (x._2, x._3)).sorted == join.collect().map(x =>
      (x.getLong(0), x.getString(1))
    ).toSeq.sorted)
    assert(r.barrier.decision.get.rows.sum == 500)
  }

  test("tasks prefer the executor that owns most of their state, else the hosts of their input") {
    val state = new NoState
    val r = routing(2, StaticBinder, state = state)
    run(routed(input(100, 2), r, 2))
    val shuffle = routed(input(100, 2), r, 2).collectFirst { case e: RoutedExchange =>
      e
    }.get.shuffleDependency.shuffleId
    def locations(executors: Int, getsTasks: String => Boolean = _ => true) =
      r.locations(Some(shuffle), executors, getsTasks).toSeq
    assert(locations(2).forall(_.isEmpty), "the map stage of that shuffle has not run")
    state.executors = Array.tabulate(shards)(s => if (s < 10) "executor_h1_1" else "executor_h2_2")
    assert(locations(2) == Seq(Seq("executor_h1_1"), Seq("executor_h2_2")))
    assert(locations(1) == Seq(Seq("executor_h1_1"), Seq("executor_h2_2")))
    // A preference for an executor that has ended would delay the task, and all others that prefer one.
    assert(locations(2, _ != "executor_h1_1") == Seq(Nil, Seq("executor_h2_2")))
  }

  test("partitionings are equal only if run, batch, region and numbers are equal") {
    val keys = input(1, 1).queryExecution.executedPlan.collectFirst { case e: ShuffleExchangeExec =>
      e.outputPartitioning.asInstanceOf[HashPartitioning]
    }.get
    val one = partitioning(keys, routing(2, StaticBinder), 2)
    assert(one == partitioning(keys, routing(2, new StickyBinder()), 2))
    assert(one != partitioning(keys, routing(3, StaticBinder), 3))
    assert(one != partitioning(keys, routing(2, StaticBinder, region = 1), 2))
    assert(one != HashPartitioning(keys.expressions, 2) && HashPartitioning(keys.expressions, 2) != one)
    assert(one.canonicalized.isInstanceOf[ShardPartitioning] && one.canonicalized != keys.canonicalized)
    assert(one.withNewChildren(one.children) == one)
  }

  test("an exchange stays routed when copied or canonicalized, and only equal exchanges are reused") {
    val df = input(10, 1)
    val plan = routed(df, routing(2, StaticBinder), 2)
    assert(plan.sameResult(routed(df, routing(2, StaticBinder), 2)))
    assert(!plan.sameResult(routed(df, routing(2, StaticBinder, region = 1), 2)))
    assert(!plan.sameResult(df.queryExecution.executedPlan) && !df.queryExecution.executedPlan.sameResult(plan))
    assert(plan.canonicalized.exists(
      _.isInstanceOf[RoutedExchange]
    ) && plan.clone().exists(_.isInstanceOf[RoutedExchange]))
  }

  test("explain shows tasks, shards and routing version") {
    val text = new StringBuilder
    val plan = routed(input(10, 1), routing(2, StaticBinder), 2)
    ExplainUtils.processPlan(plan, text.append(_))
    Seq(plan.treeString, text.toString).foreach { t =>
      assert(t.contains("RoutedExchange") && t.contains("tasks=2, shards=32, routingVersion=3"), t)
    }
  }

  test("a map stage that runs again after a lost output keeps counts and binding") {
    val stages = new ConcurrentLinkedQueue[Int]()
    val listener = new SparkListener {
      override def onStageCompleted(s: SparkListenerStageCompleted): Unit = stages.add(s.stageInfo.attemptNumber())
    }
    spark.sparkContext.addSparkListener(listener)
    try {
      val r = routing(3, new ChaosBinder(4, 4, 4))
      val plan = routed(input(600, 3), r, 3)
      val first = run(plan)
      val exchange = plan.collectFirst { case e: RoutedExchange => e }.get
      val tracker = spark.sparkContext.env.mapOutputTracker.asInstanceOf[org.apache.spark.MapOutputTrackerMaster]
      tracker.unregisterAllMapAndMergeOutput(exchange.shuffleDependency.shuffleId)
      assert(run(plan).sorted == first.sorted)
      spark.sparkContext.listenerBus.waitUntilEmpty()
      assert(stages.asScala.size >= 4)
      assert(r.barrier.decision.get.rows.sum == 600)
    } finally spark.sparkContext.removeSparkListener(listener)
  }
}
