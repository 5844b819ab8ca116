package io.penstock.routing

import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class ExecutorSetSuite extends AnyFunSuite with Checks {
  private def executors(cores: Int*) = ExecutorSet(cores.indices.map(i => s"executor_h_$i").toVector, cores.toVector)

  test("tasks are divided by cores, at least one per executor, in consecutive runs") {
    assert(executors(4, 4).shares(8).map(_.counts.toSeq).contains(Seq(4, 4)))
    assert(executors(1, 3, 4).shares(8).map(_.counts.toSeq).contains(Seq(1, 3, 4)))
    assert(executors(1, 3).shares(2).map(_.counts.toSeq).contains(Seq(1, 1)))
    val shares = executors(2, 1).shares(6).get
    assert(shares.counts.toSeq == Seq(4, 2) && shares.start(1) == 4)
    assert((0 until 6).map(shares.executorOf) == Seq(0, 0, 0, 0, 1, 1))
  }

  test("no shares exist for one executor, or for fewer tasks than executors") {
    assert(Seq(ExecutorSet.None.shares(3), executors(4).shares(4), executors(1, 1, 1).shares(2)).forall(_.isEmpty))
  }

  test("every executor has tasks, and moving one would not even out the tasks per core") {
    val cases = for {
      cores <- Gen.nonEmptyListOf(Gen.choose(1, 64))
      more <- Gen.choose(0, 200)
    } yield (cores.take(20), more)
    check(Prop.forAll(cases) { case (cores, more) =>
      val counts = TaskShares.byCores(cores, cores.size + more).counts
      counts.sum == cores.size + more && counts.forall(_ >= 1) &&
      (for (a <- cores.indices; b <- cores.indices if counts(a) > 1)
        yield counts(a).toDouble / cores(a) <= (counts(b) + 1).toDouble / cores(b) + 1e-9).forall(identity)
    })
  }

  test("a plan's tasks per executor are used, on some or on all executors") {
    def counts(tasks: Int, planned: (String, Int)*) =
      executors(1, 1, 1).shares(tasks, planned.toMap).map(_.counts.toSeq)
    assert(counts(1, "executor_h_2" -> 1).contains(Seq(0, 0, 1)))
    assert(counts(3, "executor_h_0" -> 2, "executor_h_2" -> 1).contains(Seq(2, 0, 1)))
    val shares = executors(1, 1, 1).shares(2, Map("executor_h_0" -> 1, "executor_h_2" -> 1)).get
    assert((0 until 2).map(shares.executorOf) == Seq(0, 2))
    // The plan is for another number of tasks, or for another executor.
    assert(counts(2, "executor_h_2" -> 1).isEmpty && counts(1, "executor_h_9" -> 1).isEmpty)
    assert(counts(3, "executor_h_9" -> 3).contains(Seq(1, 1, 1)))
  }

  test("tasks stay where they were, unless an executor was added and there is a task for each") {
    def counts(tasks: Int, before: Int*) =
      executors(1, 3, 1).shares(tasks, before = before.map(i => s"executor_h_$i")).map(_.counts.toSeq)
    assert(counts(1, 2).contains(Seq(0, 0, 1)) && counts(2, 1, 1).contains(Seq(0, 2, 0)))
    assert(counts(4, 0, 0, 1, 2).contains(Seq(2, 1, 1)) && counts(4, 0, 0, 1, 1).contains(Seq(1, 2, 1)))
    assert(counts(2, 1).isEmpty && counts(2, 1, 9).isEmpty)
  }

  test("executors are found by their locations") {
    assert(executors(1, 1).of(Array("executor_h_1", null, "executor_h_9", "executor_h_0")).toSeq == Seq(1, -1, -1, 0))
  }
}
