package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class HomeChoiceSuite extends AnyFunSuite {
  private def choice(wanted: Seq[Int], maxBytes: Long, owner: Seq[Int] = Seq(0, 0, 0, 1)) =
    HomeChoice.of(
      owner.toArray,
      wanted.toArray,
      Array(1L, 5L, 3L, 9L),
      Array(10L, 20L, 30L, 40L),
      maxBytes
    )

  test("without a plan shards stay where their state is") {
    val c = choice(Seq(-1, -1, -1, -1), 0L, Seq(0, -1, 0, 1))
    assert((c.home.toSeq, c.ahead, c.waiting) == ((Seq(0, -1, 0, 1), Nil, 0)))
  }

  test("shards with the highest load move first, at least one and as many as the bytes allow") {
    val all = choice(Seq(1, 1, 1, 1), 1000L)
    assert((all.home.toSeq, all.ahead, all.waiting) == ((Seq(1, 1, 1, 1), Seq(1, 2, 0), 0)))
    val limited = choice(Seq(1, 1, 1, 1), 50L)
    assert((limited.home.toSeq, limited.ahead, limited.waiting) == ((Seq(0, 1, 1, 1), Seq(1, 2), 1)))
    val one = choice(Seq(1, 1, 1, 1), 0L)
    assert((one.home.toSeq, one.ahead, one.waiting) == ((Seq(0, 1, 0, 1), Seq(1), 2)))
  }

  test("a shard without an owner starts at its planned executor; one whose target is gone stays") {
    val c = choice(Seq(-1, 1, 1, 0), 1000L, Seq(0, -1, 1, 1))
    assert((c.home.toSeq, c.ahead) == ((Seq(0, 1, 1, 0), Seq(3))))
  }

  test("a plan moves only shards that are still where the plan found them") {
    val executors = ExecutorSet(Vector("a", "b"), Vector(1, 1))
    // Shards 0 to 4: stays; moves; has moved elsewhere; had no home and has one now; its target executor is gone.
    val homes = Homes(Array(null, "b", "a", "a", "c"), Array("a", "a", "b", null, "a"), "why")
    def wanted(owner: Int*) =
      new PlannedHomes(Some(homes)).homes(owner.indices.toArray, owner.toArray, executors).toSeq
    assert(wanted(0, 0, 1, -1, 0) == Seq(-1, 1, 0, 0, -1))
    assert(wanted(1, 1, 0, 1, 0) == Seq(-1, -1, -1, -1, -1))
    // Shards that begin with keys of another shard, and a plan for fewer shards.
    val other = new PlannedHomes(Some(homes)).homes(Array(1, 1), Array(0, 1), executors).toSeq
    assert(other == Seq(1, -1))
    assert(new PlannedHomes(Some(homes)).homes(Array(5), Array(0), executors).toSeq == Seq(-1))
    assert(new PlannedHomes(None).homes(Array(0), Array(0), executors).toSeq == Seq(-1))
  }
}
