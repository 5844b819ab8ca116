package io.penstock.state.memory

import io.penstock.errors.PenstockException
import org.scalatest.funsuite.AnyFunSuite

/** Memory accounts, and what happens when they exceed their limit. */
class MemoryBoundSuite extends AnyFunSuite {
  private def bound(held: MemoryAccount, limitBytes: => Long, reclaim: () => Unit = () => ()): MemoryBound =
    new MemoryBound(
      held,
      () => MemoryBound.Limit(limitBytes, s"${limitBytes}b", "executor 7"),
      reclaim
    )("3 shards of 1 stores")

  test("an account also counts in its parent until it is closed") {
    val total = new MemoryAccount()
    val (a, b) = (new MemoryAccount(Some(total)), new MemoryAccount(Some(total)))
    a.add(10L)
    b.add(5L)
    a.add(-3L)
    assert((a.bytes, b.bytes, total.bytes) == ((7L, 5L, 12L)))
    a.close()
    a.add(100L)
    a.close()
    assert((a.bytes, total.bytes) == ((0L, 5L)))
  }

  test("shared bytes count once and completely while any part of them is retained") {
    val account = new MemoryAccount()
    val shared = new SharedBytes(new Array[Byte](64), account)
    assert(account.bytes == 0L)
    shared.retain()
    shared.retain()
    shared.release()
    assert(account.bytes == 64L)
    shared.release()
    assert(account.bytes == 0L)
  }

  test("past the limit, unneeded memory is reclaimed first; the error names cause and remedies") {
    val held = new MemoryAccount()
    var unneeded = 50L
    var reclaims = 0
    val b = bound(held, 100L, { () => reclaims += 1; held.add(-unneeded); unneeded = 0L })
    held.add(100L)
    b.verify()
    assert(reclaims == 0)
    held.add(1L)
    b.verify()
    assert(reclaims == 1 && held.bytes == 51L)
    held.add(50L)
    val e = intercept[PenstockException](b.verify())
    assert(e.errorClass == "PENSTOCK_STATE_TOO_LARGE" && reclaims == 2)
    Seq(
      "101 bytes",
      "spark.penstock.state.maxBytes=100b",
      "executor 7",
      "3 shards of 1 stores",
      "spark.executor.memory",
      "more executors"
    ).foreach(t => assert(e.detail.contains(t), e.detail))
  }

  test("a rejected attempt does not commit, and releases its memory") {
    val held = new MemoryAccount()
    var limit = 100L
    val b = bound(held, limit)
    val attempt = new ChangesMemory(b)
    attempt.grew(60L)
    attempt.verifyComplete()
    intercept[PenstockException](attempt.grew(60L))
    limit = 1000L
    assert(intercept[PenstockException](attempt.verifyComplete()).errorClass == "PENSTOCK_STATE_TOO_LARGE")
    attempt.release()
    assert(held.bytes == 0L)
    val next = new ChangesMemory(b)
    next.grew(120L)
    next.verifyComplete()
  }
}
