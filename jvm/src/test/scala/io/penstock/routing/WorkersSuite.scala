package io.penstock.routing

import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class WorkersSuite extends AnyFunSuite with Checks {
  private def workers(cores: Int*) = Workers(cores.indices.map(i => s"executor_h_$i").toVector, cores.toVector)

  test("tasks are divided by cores, one for each at least, as runs of neighbours") {
    assert(workers(4, 4).shares(8).map(_.counts.toSeq).contains(Seq(4, 4)))
    assert(workers(1, 3, 4).shares(8).map(_.counts.toSeq).contains(Seq(1, 3, 4)))
    assert(workers(1, 3).shares(2).map(_.counts.toSeq).contains(Seq(1, 1)))
    val shares = workers(2, 1).shares(6).get
    assert(shares.counts.toSeq == Seq(4, 2) && shares.start(1) == 4)
    assert((0 until 6).map(shares.workerOf) == Seq(0, 0, 0, 0, 1, 1))
  }

  test("one worker, or fewer tasks than workers, are no matter of workers") {
    assert(Seq(Workers.None.shares(3), workers(4).shares(4), workers(1, 1, 1).shares(2)).forall(_.isEmpty))
  }

  test("every worker has tasks, and no worker could be given another's without having more of them for its cores") {
    val some = for {
      cores <- Gen.nonEmptyListOf(Gen.choose(1, 64))
      more <- Gen.choose(0, 200)
    } yield (cores.take(20), more)
    check(Prop.forAll(some) { case (cores, more) =>
      val counts = TaskShares.of(cores, cores.size + more).counts
      counts.sum == cores.size + more && counts.forall(_ >= 1) &&
      (for (a <- cores.indices; b <- cores.indices if counts(a) > 1)
        yield counts(a).toDouble / cores(a) <= (counts(b) + 1).toDouble / cores(b) + 1e-9).forall(identity)
    })
  }

  test("executors are known by their locations") {
    assert(workers(1, 1).of(Array("executor_h_1", null, "executor_h_9", "executor_h_0")).toSeq == Seq(1, -1, -1, 0))
  }
}
