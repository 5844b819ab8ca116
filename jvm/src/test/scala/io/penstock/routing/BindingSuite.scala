package io.penstock.routing

import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class BindingSuite extends AnyFunSuite with Checks {
  private val bindings = for {
    tasks <- Gen.choose(1, 9)
    shards <- Gen.choose(0, 60)
    taskOf <- Gen.listOfN(shards, Gen.choose(0, tasks - 1))
  } yield new Binding(tasks, taskOf.toArray)

  test("runs are maximal, ascending, and cover exactly the shards of the task") {
    check(Prop.forAll(bindings) { b =>
      (0 until b.tasks).forall { t =>
        val runs = b.runsOf(t)
        runs.flatMap { case (s, e) => s until e } == b.shardsOf(t).toSeq && runs.forall { case (s, e) => s < e } &&
        runs.zip(runs.drop(1)).forall { case ((_, e), (s, _)) => e < s }
      }
    })
  }

  test("every shard belongs to one task") {
    check(Prop.forAll(bindings)(b => (0 until b.tasks).flatMap(b.shardsOf(_)).sorted == (0 until b.shards)))
  }

  test("a small binding has the expected runs") {
    val b = new Binding(3, Array(0, 0, 1, 0, 1, 1))
    assert(b.runsOf(0) == Seq((0, 2), (3, 4)))
    assert(b.runsOf(1) == Seq((2, 3), (4, 6)))
    assert(b.runsOf(2).isEmpty && b.shardsOf(2).isEmpty)
  }

  test("the identity binding has one shard per task") {
    assert(Binding.identity(3) == new Binding(3, Array(0, 1, 2)))
  }

  test("a shard bound to a task that does not exist is rejected") {
    intercept[IllegalArgumentException](new Binding(2, Array(0, 2)))
    intercept[IllegalArgumentException](new Binding(0, Array()))
  }
}
