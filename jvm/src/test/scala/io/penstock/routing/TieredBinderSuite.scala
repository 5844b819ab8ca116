package io.penstock.routing

import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class TieredBinderSuite extends AnyFunSuite with Checks {
  private val never = Double.PositiveInfinity

  private def bound(
      load: Seq[Long],
      home: Seq[Int],
      cost: Seq[Double],
      cores: Seq[Int] = Seq(2, 2),
      before: Option[Seq[Int]] = None,
      theta: Double = 1.01
  ): Seq[Int] = {
    val shares = TaskShares.of(cores)
    val binder = new TieredBinder(
      theta,
      DeadBand.Empty,
      shares,
      home.toArray,
      cost.toArray,
      before.fold(Array.fill(load.size)(-1))(_.toArray)
    )
    binder.bind(load.toArray, shares.tasks, None).toSeq
  }

  test("shards stay on their executor and are spread over its tasks") {
    val taskOf = bound(Seq(5, 5, 1, 1), Seq(0, 0, 1, 1), Seq.fill(4)(never))
    assert(taskOf.take(2).toSet == Set(0, 1) && taskOf.drop(2).toSet == Set(2, 3))
  }

  test("a shard leaves its executor only if the batch gains more than the move costs") {
    // Two tasks have 40 and two have none: moving one shard of 10 gains 5 per task, moving two gains 10.
    val (load, home) = (Seq(10L, 10L, 10L, 10L), Seq(0, 0, 0, 0))
    def moved(cost: Double) = bound(load, home, Seq.fill(4)(cost)).count(_ >= 2)
    assert(moved(0) == 2 && moved(4.9) == 2 && moved(5.1) == 0 && moved(never) == 0)
  }

  test("of equal shards the one with less state moves") {
    val taskOf = bound(Seq(10, 10, 10, 10, 10, 10), Seq(0, 0, 0, 0, 1, 1), Seq(3, 1, 3, 3, 0, 0))
    assert(taskOf.map(_ / 2) == Seq(0, 1, 0, 0, 1, 1))
  }

  test("all shards leave an executor without tasks, whatever their cost") {
    val taskOf = bound(Seq(4, 3, 2, 1), Seq(0, 0, 1, 1), Seq.fill(4)(never), cores = Seq(0, 1, 1))
    assert(taskOf == Seq(1, 0, 0, 0))
    assert(bound(Seq(4, 3), Seq(0, 2), Seq.fill(2)(never), cores = Seq(0, 1, 0)) == Seq(0, 0))
  }

  test("nothing moves if a single shard determines the batch's time") {
    assert(bound(Seq(60, 20, 20, 20), Seq(0, 0, 0, 1), Seq.fill(4)(0.1)).map(_ / 2) == Seq(0, 0, 0, 1))
    assert(bound(Seq(30, 30, 20, 20), Seq(0, 0, 0, 1), Seq.fill(4)(0.1)).map(_ / 2).count(_ == 1) == 2)
  }

  test("shards without a home are placed by the executors' cores") {
    val taskOf = bound(Seq.fill(8)(1L), Seq.fill(8)(ExecutorSet.Unknown), Seq.fill(8)(never), cores = Seq(3, 1))
    assert(taskOf.count(_ < 3) == 6 && taskOf.count(_ == 3) == 2)
  }

  test("shards keep their task within an executor where balance allows it") {
    val load = Seq(1L, 1L, 1L, 1L)
    assert(bound(load, Seq(0, 0, 1, 1), Seq.fill(4)(never), before = Some(Seq(1, 0, 3, 2))) == Seq(1, 0, 3, 2))
    // Both shards are on one executor, and one of them has no task yet: it takes the free task.
    val taskOf = bound(Seq(1L, 1L), Seq(0, 0), Seq(never, never), before = Some(Seq(1, -1)))
    assert(taskOf == Seq(1, 0))
  }

  test("tasks of the batch before are matched by executor, in another order and number") {
    val executors = ExecutorSet(Vector("b", "c", "a"), Vector(1, 1, 2))
    val shares = executors.shares(4).get
    // Tasks 0 to 2 were on executor a, task 3 on b, task 4 on d.
    val executorOf = Vector("a", "a", "a", "b", "d")
    val before = TieredBinder.before(Array(0, 1, 2, 3, 4, 0), executorOf, executors, shares, Array(2, 2, 2, 0, 1, 0))
    assert(before.toSeq == Seq(2, 3, -1, 0, -1, -1))
    assert(TieredBinder.before(Array(0), Vector.empty, executors, shares, Array(0)).toSeq == Seq(-1))
  }

  private val cases = for {
    load <- anyRows.map(_.map(_ % 1000000L))
    cores <- Gen.choose(2, 6).flatMap(n => Gen.listOfN(n, Gen.choose(0, 8))).map(n => n.init :+ math.max(1, n.last))
    home <- Gen.listOfN(load.length, Gen.choose(-1, cores.size - 1))
    cost <- Gen.listOfN(
      load.length,
      Gen.oneOf(Gen.const(0.0), Gen.choose(0.0, 1e5), Gen.const(Double.PositiveInfinity))
    )
  } yield (load, cores, home.toArray, cost.toArray)

  private def longest(load: Array[Long], executor: Array[Int], cores: Seq[Int]): Double =
    cores.indices.filter(cores(_) > 0)
      .map(w => executor.indices.filter(executor(_) == w).map(load(_).toDouble).sum / cores(w)).max

  test("moves gain more than they cost, immovable shards stay, and the result is deterministic") {
    check(Prop.forAll(cases) { case (load, cores, home, cost) =>
      def placed(cost: Array[Double]) =
        new ExecutorBalance(load, cores.toArray, cost, 1.05).of(home)
      val stay = placed(Array.fill(load.length)(never))
      val now = placed(cost)
      val moved = load.indices.filter(s => now(s) != stay(s))
      val gained = longest(load, stay, cores) - longest(load, now, cores)
      def left(s: Int) = home(s) < 0 || cores(home(s)) == 0
      now.forall(w => w >= 0 && w < cores.size && cores(w) > 0) &&
      home.indices.forall(s => left(s) || stay(s) == home(s)) &&
      moved.forall(cost(_) < never) && gained >= moved.map(cost(_)).sum - 1e-6 && now.sameElements(placed(cost))
    })
  }

  test("if moves are free, executors end within theta or one shard of the mean") {
    check(Prop.forAll(cases) { case (load, cores, home, _) =>
      val now = new ExecutorBalance(load, cores.toArray, new Array(load.length), 1.05).of(home)
      val mean = load.map(_.toDouble).sum / cores.sum
      longest(load, now, cores) <= math.max(1.05 * mean, mean + load.max.toDouble) + 1e-6
    })
  }
}
