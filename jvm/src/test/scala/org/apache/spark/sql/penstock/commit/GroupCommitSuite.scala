package org.apache.spark.sql.penstock.commit

import java.util.UUID
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}
import java.util.concurrent.{Executors, RejectedExecutionException}

import scala.util.Try

import org.apache.spark.sql.penstock.lease._

import io.penstock.sharding.Layout
import org.scalatest.concurrent.Eventually.{eventually, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** Commits that wait for a manifest share it, and are answered whatever happens to it. */
class GroupCommitSuite extends AnyFunSuite with QueryRuns {

  test("every commit of many threads is answered once a manifest contains it, one manifest at a time") {
    val threads = Executors.newFixedThreadPool(8)
    val (noted, durable) = (new AtomicLong, new AtomicLong)
    val (writing, manifests) = (new AtomicInteger, new AtomicInteger)
    val early, answered = new AtomicInteger
    val group = new GroupCommit(
      () => {
        assert(writing.incrementAndGet() == 1)
        val contained = noted.get
        durable.set(contained)
        manifests.incrementAndGet()
        writing.decrementAndGet()
        contained
      },
      threads
    )
    val lock = new Object
    val total = 2000
    try {
      (1 to total).foreach { _ =>
        threads.execute { () =>
          lock.synchronized {
            val n = noted.incrementAndGet()
            group.add(
              n,
              { outcome =>
                if (outcome.isFailure || durable.get < n) early.incrementAndGet()
                answered.incrementAndGet(): Unit
              }
            )
          }
          group.start()
        }
      }
      eventually(timeout(10.seconds))(assert(answered.get == total))
      group.awaitIdle()
      assert(early.get == 0 && manifests.get <= total)
    } finally threads.shutdownNow(): Unit
  }

  test("if no thread can write, waiting commits are answered with the reason") {
    val group = new GroupCommit(() => 1L, _ => throw new RejectedExecutionException("the pool was shut down"))
    var answered = Option.empty[Try[Unit]]
    group.add(1L, outcome => answered = Some(outcome))
    group.start()
    assert(answered.exists(_.failed.toOption.exists(_.getMessage == "the pool was shut down")))
    group.awaitIdle()
  }

  private def attempt(id: Long, stageId: Int = 3, stageAttempt: Int = 0): TaskAttempt =
    TaskAttempt(stageId, stageAttempt, 0, id.toInt, id)

  test("commits that arrive while a manifest is written share the next one") {
    val queued = new java.util.concurrent.LinkedBlockingQueue[Runnable]()
    val c = commits(root(), writers = queued.put(_))
    open(c, 0)
    // Creates the manifest's file.
    queued.take().run()
    var answered = 0
    def send(shards: Seq[Int], id: Long): Unit =
      c.committed(message(c, 0, shards, s"v$id", inline = true, attempt(id)))(o => if (o.isSuccess) answered += 1)
    send(0 until 3, 1L)
    send(Seq(3), 2L)
    assert(answered == 1 && manifests(c.stateRoot).isEmpty)
    (0 until 3).foreach(s => send(Seq(s), 1L))
    assert(answered == 1 && queued.size == 1)
    queued.take().run()
    assert(answered == 5 && manifests(c.stateRoot) == Seq("0.0"))
  }

  test("after any error of the manifest's writer, waiting commits are answered and the next write works") {
    val at = root()
    var memory = false
    val c = new QueryCommits(
      UUID.randomUUID(),
      at,
      shardCount,
      hadoop,
      report = (_, _, _) => if (!memory) throw new OutOfMemoryError("on purpose"),
      attempts = new Commits.States,
      writers = write =>
        try write.run()
        catch { case _: OutOfMemoryError => () }
    )
    c.open(BatchSpec(c.runId, at, 0L, shardCount, Seq(region), countedBySpark = true))(Map(0L -> Layout(shardCount)))
    def send(): Try[Unit] = {
      var answered = Option.empty[Try[Unit]]
      c.committed(message(c, 0, 0 until 4, "a", inline = true, attempt(1)))(outcome => answered = Some(outcome))
      answered.get
    }
    assert(send().failed.get.isInstanceOf[OutOfMemoryError])
    memory = true
    assert(send().isSuccess && content(at, 0).map(_("k0")) == (0 until 4).map(s => s"a-$s"))
    open(c, 1)
  }
}
