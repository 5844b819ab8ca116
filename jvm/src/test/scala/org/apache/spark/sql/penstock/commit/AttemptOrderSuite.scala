package org.apache.spark.sql.penstock.commit

import scala.util.Try

import org.apache.spark.sql.penstock.lease._

import io.penstock.errors.PenstockException
import org.scalatest.concurrent.Eventually.{eventually, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** Of several attempts that commit the same shards, the one that Spark counts is kept. */
class AttemptOrderSuite extends AnyFunSuite with QueryRuns {

  private def attempt(id: Long, stageId: Int = 3, stageAttempt: Int = 0): TaskAttempt =
    TaskAttempt(stageId, stageAttempt, 0, id.toInt, id)

  test("the first of two running attempts of a task counts, and the other one if the first fails") {
    val states = new Commits.States
    val c = commits(root(), attempts = states)
    open(c, 0)
    val (first, copy) = (attempt(7), attempt(8))
    commit(c, 0, Seq(0, 1), "first", attempt = first)
    var answered = Option.empty[Try[Unit]]
    val waiting = message(c, 0, Seq(0, 1), "copy", inline = true, copy)
    c.committed(waiting)(outcome => answered = Some(outcome))
    commit(c, 0, Seq(2, 3), "other", attempt = attempt(9).copy(partition = 1))
    assert(content(c.stateRoot, 0).map(_("k0")).head == "first-0" && answered.isEmpty)
    // The first attempt's executor is lost before Spark has its result.
    states(first) = AttemptState.Failed
    eventually(timeout(10.seconds))(assert(answered.exists(_.isSuccess)))
    assert(content(c.stateRoot, 0).map(_("k0")) == Seq("copy-0", "copy-1", "other-2", "other-3"))
    assert(open(c, 1).base.stores(store).lineage(0) == waiting.lineage)
  }

  test("the commit of a losing speculative attempt is denied whenever it arrives") {
    val states = new Commits.States
    val c = commits(root(), attempts = states)
    open(c, 0)
    commit(c, 0, 0 until 4, "winner", attempt = attempt(8))
    states(attempt(8)) = AttemptState.Succeeded
    val e = intercept[PenstockException](commit(c, 0, 0 until 4, "loser", attempt = attempt(7)))
    assert(e.errorClass == "PENSTOCK_COMMIT_DENIED" && e.detail.contains("task attempt 8"))
    assert(content(c.stateRoot, 0).map(_("k0")).head == "winner-0" && manifests(c.stateRoot) == Seq("0.0"))
  }

  test("an attempt of an older stage attempt is denied, and one of a newer stage attempt counts") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "old", attempt = attempt(3))
    commit(c, 0, 0 until 4, "new", attempt = attempt(7, stageAttempt = 1))
    val e = intercept[PenstockException](commit(c, 0, 0 until 4, "zombie", attempt = attempt(4)))
    assert(e.errorClass == "PENSTOCK_COMMIT_DENIED")
    assert(content(c.stateRoot, 0).map(_("k0")) == (0 until 4).map(s => s"new-$s"))
  }

  test("a further action takes one more manifest, and counts when all of it has committed") {
    val c = commits(root())
    open(c, 0)
    (0 until 4).foreach(s => commit(c, 0, Seq(s), "first", attempt = attempt(s.toLong)))
    assert(manifests(c.stateRoot) == Seq("0.0"))
    (0 until 3).foreach(s => commit(c, 0, Seq(s), "second", attempt = attempt(10L + s, stageId = 4)))
    assert(manifests(c.stateRoot) == Seq("0.0"))
    // A late commit of the first action changes nothing.
    commit(c, 0, Seq(1), "slow", attempt = attempt(1))
    val last = commit(c, 0, Seq(3), "second", attempt = attempt(13, stageId = 4))
    assert(manifests(c.stateRoot).last == s"0.${manifests(c.stateRoot).size - 1}")
    assert(content(c.stateRoot, 0).map(_("k0")) == (0 until 4).map(s => s"second-$s"))
    commit(c, 0, Seq(0, 1), "part", attempt = attempt(20, stageId = 5))
    val base = open(c, 1).base
    assert(base.stores(store).lineage(3) == last && content(c.stateRoot, 0).map(_("k0")).head == "second-0")
  }
}
