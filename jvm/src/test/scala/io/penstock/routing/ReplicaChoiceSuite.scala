package io.penstock.routing

import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class ReplicaChoiceSuite extends AnyFunSuite with Checks {
  private def choice(home: Seq[Int], replica: Seq[Int], maxBytes: Long = 1000L, executors: Int = 3) =
    ReplicaChoice.of(
      home.toArray,
      replica.toArray,
      Array(1L, 5L, 3L, 9L),
      Array(10L, 20L, 30L, 40L),
      maxBytes,
      executors
    )

  test("replicas are spread over the other executors, shards with the highest load first") {
    assert(choice(Seq(0, 0, 1, 2), Seq(-1, -1, -1, -1)) == Seq(3 -> 1, 1 -> 2, 2 -> 2, 0 -> 1))
    assert(choice(Seq(0, 1, 1, 0), Seq(-1, -1, -1, -1), executors = 2).toMap == Map(0 -> 1, 1 -> 0, 2 -> 0, 3 -> 1))
  }

  test("a replica stays in place, unless its executor has become the shard's home") {
    assert(choice(Seq(0, 0, 1, 2), Seq(2, 1, 1, 0)).toMap == Map(0 -> 2, 1 -> 1, 2 -> 2, 3 -> 0))
  }

  test("existing replicas are kept whatever their size; new ones wait for room, except for one") {
    assert(choice(Seq(0, 0, 1, 2), Seq(-1, 1, -1, -1), maxBytes = 0L).map(_._1) == Seq(1, 3))
    assert(choice(Seq(0, 0, 1, 2), Seq(-1, 1, -1, -1), maxBytes = 70L).map(_._1) == Seq(1, 3, 2))
  }

  test("there are no replicas with one executor, or for shards without a home or state") {
    assert(choice(Seq(0, 0, 0, 0), Seq(-1, -1, -1, -1), executors = 1).isEmpty)
    assert(choice(Seq(-1, 0, -1, -1), Seq(-1, -1, -1, -1)).map(_._1) == Seq(1))
    assert(ReplicaChoice.of(Array(0), Array(-1), Array(1L), Array(0L), 10L, 2).isEmpty)
  }

  test("no replica is on the shard's home, and the choice is stable") {
    val cases = for {
      executors <- Gen.choose(2, 6)
      shards <- Gen.choose(1, 50)
      home <- Gen.listOfN(shards, Gen.choose(-1, executors - 1))
      replica <- Gen.listOfN(shards, Gen.choose(-1, executors - 1))
    } yield (executors, home.toArray, replica.toArray)
    check(Prop.forAll(cases) { case (executors, home, replica) =>
      val ones = Array.fill(home.length)(1L)
      def chosen(replica: Array[Int]) = ReplicaChoice.of(home, replica, ones, ones, Long.MaxValue, executors)
      val to = chosen(replica)
      val after = home.indices.map(to.toMap.getOrElse(_, -1)).toArray
      to.forall { case (s, w) => w != home(s) && w >= 0 && w < executors } &&
      to.size == home.count(_ >= 0) && chosen(after).toMap == to.toMap
    })
  }
}
