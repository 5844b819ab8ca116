package io.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class HomeChoiceSuite extends AnyFunSuite {
  private def choice(planned: Option[Seq[Int]], mostBytes: Long, owner: Seq[Int] = Seq(0, 0, 0, 1)) =
    HomeChoice.of(
      owner.toArray,
      planned.map(_.toArray),
      Array(1L, 5L, 3L, 9L),
      Array(10L, 20L, 30L, 40L),
      mostBytes
    )

  test("without a plan shards are where their state is") {
    val c = choice(None, 0L, Seq(0, -1, 0, 1))
    assert((c.home.toSeq, c.ahead, c.waiting) == ((Seq(0, -1, 0, 1), Nil, 0)))
  }

  test("the shards with most load go first, as far as the bytes allow, and one at least") {
    val all = choice(Some(Seq(1, 1, 1, 1)), 1000L)
    assert((all.home.toSeq, all.ahead, all.waiting) == ((Seq(1, 1, 1, 1), Seq(1, 2, 0), 0)))
    val some = choice(Some(Seq(1, 1, 1, 1)), 50L)
    assert((some.home.toSeq, some.ahead, some.waiting) == ((Seq(0, 1, 1, 1), Seq(1, 2), 1)))
    val one = choice(Some(Seq(1, 1, 1, 1)), 0L)
    assert((one.home.toSeq, one.ahead, one.waiting) == ((Seq(0, 1, 0, 1), Seq(1), 2)))
  }

  test("a shard that nobody has begins where it is planned, and one whose new worker is gone stays") {
    val c = choice(Some(Seq(-1, 1, 1, 0)), 1000L, Seq(0, -1, 1, 1))
    assert((c.home.toSeq, c.ahead) == ((Seq(0, 1, 1, 0), Seq(3))))
  }
}
