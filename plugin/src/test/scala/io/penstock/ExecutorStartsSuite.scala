package io.penstock

import java.util.Properties

import scala.collection.mutable

import org.apache.spark.scheduler._

import org.scalatest.funsuite.AnyFunSuite

class ExecutorStartsSuite extends AnyFunSuite {
  private class Watched {
    val cancelled: mutable.ArrayBuffer[(Int, String)] = mutable.ArrayBuffer.empty
    private val starts = new ExecutorStarts((job, reason) => cancelled += job -> reason)

    def jobStarts(id: Int): Unit = starts.onJobStart(SparkListenerJobStart(id, 0L, Nil, new Properties))
    def jobEnds(id: Int): Unit = starts.onJobEnd(SparkListenerJobEnd(id, 0L, JobSucceeded))
    def lost(reason: String): Unit = starts.onExecutorRemoved(SparkListenerExecutorRemoved(0L, "7", reason))
    def lostToPlugin(): Unit = lost("Unable to create executor due to io.penstock.PenstockPlugin")
  }

  test("waiting jobs are cancelled with the reason after several failed starts") {
    val watched = new Watched
    watched.jobStarts(1)
    watched.jobStarts(2)
    watched.jobEnds(1)
    (1 until ExecutorStarts.Limit).foreach(_ => watched.lostToPlugin())
    assert(watched.cancelled.isEmpty)
    watched.lostToPlugin()
    assert(watched.cancelled.map(_._1) == Seq(2))
    assert(watched.cancelled.head._2.contains("PENSTOCK_EXECUTOR_START"))
    assert(watched.cancelled.head._2.contains("io.penstock.PenstockPlugin"))
  }

  test("executors that are lost for other reasons cancel no jobs") {
    val watched = new Watched
    watched.jobStarts(1)
    (1 to 3 * ExecutorStarts.Limit).foreach(_ => watched.lost("Remote RPC client disassociated"))
    assert(watched.cancelled.isEmpty)
    assert(
      ExecutorStarts.blamesPlugin("Unable to create executor due to [PENSTOCK_UNSUPPORTED_SPARK] This is Spark 4.3")
    )
    assert(!ExecutorStarts.blamesPlugin(null))
  }
}
