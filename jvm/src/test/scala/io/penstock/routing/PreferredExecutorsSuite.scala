package io.penstock.routing

import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class PreferredExecutorsSuite extends AnyFunSuite with Checks {
  private val cases = for {
    rows <- anyRows
    tasks <- Gen.choose(1, 12)
    taskOf <- Gen.listOfN(rows.length, Gen.choose(0, tasks - 1))
    owners <- Gen.listOfN(rows.length, Gen.oneOf("a", "b", "c", null))
    most <- Gen.choose(1, 5)
  } yield (new Binding(tasks, taskOf.toArray), rows, owners.toArray, most)

  test("an executor is preferred only by tasks with state on it, and by no more than its share") {
    check(Prop.forAll(cases) { case (binding, rows, owners, most) =>
      val preferred = PreferredExecutors.byState(binding, rows, owners, most)
      preferred.zipWithIndex.forall { case (p, t) => p.forall(e => binding.shardsOf(t).exists(owners(_) == e)) } &&
      preferred.flatten.groupBy(identity).values.forall(_.length <= most)
    })
  }

  test("the heaviest claim wins, and other tasks get their next best executor") {
    val binding = new Binding(3, Array(0, 0, 1, 1, 2))
    val owners = Array("a", "b", "a", "b", "a")
    val rows = Array[Long](10, 1, 5, 4, 3)
    assert(PreferredExecutors.byState(binding, rows, owners, 3).toSeq == Seq(Some("a"), Some("a"), Some("a")))
    assert(PreferredExecutors.byState(binding, rows, owners, 1).toSeq == Seq(Some("a"), Some("b"), None))
  }

  test("tasks without known state have no preference") {
    val binding = new Binding(2, Array(0, 1, 0))
    assert(PreferredExecutors.byState(binding, new Array[Long](3), Array.empty, 1).forall(_.isEmpty))
    assert(PreferredExecutors.byState(binding, new Array[Long](3), Array(null, "x"), 1).toSeq == Seq(None, Some("x")))
  }
}
