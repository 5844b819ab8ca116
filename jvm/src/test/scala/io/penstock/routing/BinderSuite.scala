package io.penstock.routing

import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class BinderSuite extends AnyFunSuite with Checks {
  private val sticky = new StickyBinder(1.05)
  private val binders: Seq[Binder] =
    Seq(
      sticky,
      new StickyBinder(1.5),
      StaticBinder,
      new ChaosBinder(3, 14, 15),
      new PlannedBinder(None),
      new PlannedBinder(Some(Array(0, 1, 0)))
    )

  /** Rows of shards, a number of tasks, and owners from a batch with another number of tasks. */
  private val steps = for {
    rows <- anyRows
    tasks <- anyTasks
    before <- anyTasks
    owners <- Gen.option(Gen.listOfN(rows.length, Gen.choose(0, before - 1)).map(_.toArray))
  } yield (rows, tasks, owners)

  private def ratio(rows: Array[Long], taskOf: Array[Int], tasks: Int) =
    Load.imbalance(Load.ofTasks(rows, taskOf, tasks))

  test("every binder binds every shard to a task and is deterministic") {
    check(Prop.forAll(steps) { case (rows, tasks, owners) =>
      binders.forall { b =>
        val taskOf = b.bind(rows, tasks, owners)
        taskOf.length == rows.length && taskOf.forall(t => t >= 0 && t < tasks) &&
        taskOf.sameElements(b.bind(rows, tasks, owners))
      }
    })
  }

  test("binders do not change their arguments") {
    check(Prop.forAll(steps) { case (rows, tasks, owners) =>
      val (r, o) = (rows.clone(), owners.map(_.clone()))
      binders.foreach(_.bind(rows, tasks, owners))
      r.sameElements(rows) && owners.zip(o).forall { case (a, b) => a.sameElements(b) }
    })
  }

  test("a plan that does not fit falls back to the owners before, and then to shard ids") {
    val rows = Array.fill(4)(1L)
    def bound(plan: Option[Array[Int]], previous: Option[Array[Int]]) =
      new PlannedBinder(plan).bind(rows, 3, previous).toSeq
    val (plan, before) = (Some(Array(2, 0, 1, 1)), Some(Array(1, 1, 0, 2)))
    assert(bound(plan, before) == Seq(2, 0, 1, 1))
    Seq(None, Some(Array(2, 0, 1)), Some(Array(2, 0, 1, 3)), Some(Array(2, 0, 1, -1))).foreach { unfit =>
      assert(bound(unfit, before) == Seq(1, 1, 0, 2))
      assert(bound(unfit, unfit) == Seq(0, 0, 1, 2))
    }
  }

  test("sticky is within theta wherever longest-first is, and never worse than longest-first") {
    check(
      Prop.forAll(steps) { case (rows, tasks, owners) =>
        val reached = ratio(rows, sticky.bind(rows, tasks, owners), tasks)
        reached <= math.max(1.05, ratio(rows, Load.longestFirst(rows, tasks), tasks)) * (1 + 1e-12)
      },
      500
    )
  }

  test("sticky binds the same rows again without moves") {
    check(Prop.forAll(steps) { case (rows, tasks, owners) =>
      val once = sticky.bind(rows, tasks, owners)
      val twice = sticky.bind(rows, tasks, Some(once))
      sticky.bind(rows, tasks, Some(twice)).sameElements(twice)
    })
  }

  test("sticky moves only one shard where one is enough") {
    val owners = Array(0, 0, 0, 1, 1, 1, 2, 2, 2)
    val rows = Array[Long](4, 3, 6, 4, 3, 3, 4, 3, 3)
    assert(new StickyBinder(1.2).bind(rows, 3, Some(owners)).sameElements(owners), "13 of a mean of 11 is within 1.2")
    val heavier = Array[Long](4, 3, 9, 4, 3, 3, 4, 1, 2)
    val taskOf = new StickyBinder(1.2).bind(heavier, 3, Some(owners))
    assert(taskOf.toSeq == Seq(0, 1, 0, 1, 1, 1, 2, 2, 2), "the lightest that is enough goes to the fullest with room")
  }

  test("sticky puts a hot shard on the task that must shed the least for it") {
    // Task 0 would have to shed six shards of 5; task 1 makes room for the hot shard with two of 25.
    val rows = (80L +: Array.fill(8)(5L)) ++ Array(25L, 25L, 10L) ++ Array.fill(9)(10L)
    val owners = Array.fill(9)(0) ++ Array.fill(3)(1) ++ Array.fill(9)(2)
    val taskOf = sticky.bind(rows, 3, Some(owners))
    assert(Load.ofTasks(rows, taskOf, 3).toSeq == Seq(90, 90, 90))
    assert(Load.moved(Some(owners), taskOf) == 3)
  }

  test("sticky leaves shards of the remaining tasks in place when tasks are removed") {
    val rows = Array.fill(8)(5L)
    val owners = Array(0, 1, 2, 3, 0, 1, 2, 3)
    val taskOf = sticky.bind(rows, 2, Some(owners))
    assert(Load.ofTasks(rows, taskOf, 2).toSeq == Seq(20, 20))
    owners.indices.filter(owners(_) < 2).foreach(s => assert(taskOf(s) == owners(s)))
  }

  test("shards without rows are spread evenly, at first and when tasks are added") {
    val none = new Array[Long](256)
    val first = sticky.bind(none, 4, None)
    assert((0 until 4).map(t => first.count(_ == t)) == Seq(64, 64, 64, 64))
    val more = sticky.bind(none, 16, Some(first))
    assert((0 until 16).forall(t => more.count(_ == t) <= 32))
  }

  /** Zipf 0.85 over 10,000 keys. Every batch makes other keys hot, as in the benchmark's drift. */
  private class Drift(shards: Int, seed: Long) {
    private val random = new scala.util.Random(seed)
    private val keys = 10000
    private val shardOf = Array.fill(keys)(random.nextInt(shards))
    private val cumulated = {
      val w = Array.tabulate(keys)(i => math.pow(i + 1.0, -0.85))
      w.scanLeft(0.0)(_ + _).tail.map(_ / w.sum)
    }

    def batch(rows: Int): Array[Long] = {
      val hot = random.shuffle((0 until keys).toVector)
      val counts = new Array[Long](shards)
      (0 until rows).foreach { _ =>
        val i = java.util.Arrays.binarySearch(cumulated, random.nextDouble())
        counts(shardOf(hot(math.min(keys - 1, if (i < 0) -i - 1 else i)))) += 1
      }
      counts
    }
  }

  for {
    (tasks, rows) <- Seq(2 -> 10000, 4 -> 20000, 8 -> 40000, 16 -> 80000)
    (theta, most) <- Seq(1.05 -> 5, 1.003 -> 8)
  } test(s"drift on $tasks tasks: every batch is within $theta, and at most $most % of the shards move") {
    val drift = new Drift(256, tasks)
    val binder = new StickyBinder(theta)
    val steps = Iterator.iterate((Option.empty[Array[Int]], 0.0, 0.0)) { case (owners, _, _) =>
      val counts = drift.batch(rows)
      val taskOf = binder.bind(counts, tasks, owners)
      // Where one shard is too heavy, no binding is within theta.
      val limit = math.max(theta, ratio(counts, Load.longestFirst(counts, tasks), tasks))
      (Some(taskOf), ratio(counts, taskOf, tasks) / limit, owners.fold(0.0)(o => Load.moved(Some(o), taskOf) / 256.0))
    }.drop(1).take(21).toSeq
    assert(steps.map(_._2).max <= 1 + 1e-12)
    val moved = steps.drop(1).map(_._3)
    info(f"${moved.sum / moved.size * 100}%.1f %%, in one batch up to ${moved.max * 100}%.1f %%")
    assert(moved.sum / moved.size <= most / 100.0, moved)
  }

  test("sticky exchanges shards where no task has room for a whole shard") {
    val rows = Array[Long](54, 52, 50, 48)
    val owners = Array(0, 0, 1, 1)
    val taskOf = new StickyBinder(1.03).bind(rows, 2, Some(owners))
    assert(Load.ofTasks(rows, taskOf, 2).max == 104 && Load.moved(Some(owners), taskOf) == 2)
  }

  test("static binds consecutive shards to each task, in equal numbers") {
    assert(StaticBinder.bind(new Array[Long](8), 3, None).toSeq == Seq(0, 0, 0, 1, 1, 1, 2, 2))
    check(Prop.forAll(anyRows, anyTasks) { (rows, tasks) =>
      val taskOf = StaticBinder.bind(rows, tasks, None)
      val sizes = (0 until tasks).map(t => taskOf.count(_ == t))
      taskOf.toSeq == taskOf.toSeq.sorted && sizes.max - sizes.min <= 1
    })
  }

  test("chaos bindings differ by seed, batch and region") {
    val rows = new Array[Long](64)
    val bindings = for (seed <- 0 to 2; batch <- 0 to 2; region <- 0 to 2)
      yield new ChaosBinder(seed, batch, region).bind(rows, 5, None).toSeq
    assert(bindings.distinct.size == 27)
  }

  test("each tasks policy gives its number of tasks, at most one per shard") {
    def cores(cores: Int, shards: Int) = CoresPolicy.tasks(0, 0, cores, shards, None)
    assert((cores(8, 256), cores(8, 4), cores(0, 4)) == ((8, 4, 1)))
    val sixteen = new FixedPolicy(16)
    assert(sixteen.tasks(0, 0, 2, 256, None) == 16 && sixteen.tasks(0, 0, 2, 4, Some(2)) == 4)
    val chaos = new ChaosPolicy(7)
    val drawn = (0 until 100).map(b => chaos.tasks(b, 0, 8, 256, None))
    assert(drawn.distinct.sorted == (1 to ChaosPolicy.Most))
    assert(drawn == (0 until 100).map(b => new ChaosPolicy(7).tasks(b, 0, 2, 256, Some(9))))
    assert((0 until 100).forall(b => chaos.tasks(b, 0, 8, 2, None) <= 2))
  }

  test("without a plan the number of tasks stays the same, limited by the cores") {
    def planned(plan: Option[Int], now: Option[Int]) = new PlannedPolicy(_ => plan).tasks(0, 0, 8, 256, now)
    assert((planned(None, None), planned(None, Some(3)), planned(None, Some(16))) == ((8, 3, 8)))
    assert((planned(Some(5), Some(3)), planned(Some(16), Some(3))) == ((5, 8)))
  }
}
