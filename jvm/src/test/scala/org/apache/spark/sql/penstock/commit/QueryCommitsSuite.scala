package org.apache.spark.sql.penstock.commit

import java.nio.file.{Files, Path}
import java.util.UUID

import scala.util.{Random, Try}

import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.state.{ManifestCache, ShardHistory, ShardLoader, StateDirectory}

import io.penstock.errors.PenstockException
import io.penstock.sharding.Layout
import io.penstock.state.engine.KeyBytes
import io.penstock.state.format._
import io.penstock.telemetry.MovedState
import org.scalatest.concurrent.Eventually.{eventually, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** The commit protocol on real files: which attempts count, when a batch is durable, and what is rejected. */
class QueryCommitsSuite extends AnyFunSuite with QueryRuns {

  test("a batch is durable with its last commit, not before") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1), "a")
    assert(manifests(c.stateRoot).isEmpty)
    commit(c, 0, Seq(2, 3), "b", inline = false)
    assert(manifests(c.stateRoot) === Seq("0.0"))
    assert(content(c.stateRoot, 0) === Seq("a-0", "a-1", "b-2", "b-3").map(v => Map("k0" -> v)))
  }

  test("a later attempt replaces an earlier one, before and after the manifest") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1), "first")
    commit(c, 0, Seq(0, 1), "second")
    commit(c, 0, Seq(2, 3), "other")
    assert(content(c.stateRoot, 0).map(_("k0")) === Seq("second-0", "second-1", "other-2", "other-3"))
    val lineage = commit(c, 0, Seq(0, 1), "third", inline = false)
    assert(manifests(c.stateRoot) === Seq("0.0", "0.1"))
    assert(content(c.stateRoot, 0).map(_("k0")) === Seq("third-0", "third-1", "other-2", "other-3"))
    val next = open(c, 1).base
    assert(next.generation === 1)
    assert(next.stores(store).lineage(0) === lineage)
  }

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

  test("the base named in a lease of a single-partition operator is found in the manifest") {
    val c = commits(root())
    val single = region.copy(single = true)
    def begin(batch: Long) =
      c.open(BatchSpec(c.runId, c.stateRoot, batch, shardCount, Seq(single)))(Map(0L -> Layout(shardCount)))(0L)
    begin(0)
    val lineage = commit(c, 0, Seq(0), "a")
    val base = begin(1).base
    assert(base.stores(store).lineage(0) == lineage)
    val directory = new StateDirectory(c.stateRoot, hadoop)
    val m = ManifestCache.startingFrom(directory, 0L, base.generation)(store, base.stores(store).lineages)
    assert(m.stores(store).map(_.lineage) == Vector(lineage))
  }

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

  test("the state load of each shard is the one that was reported last") {
    val c = commits(root())
    assert(c.stateLoadsOf(0L).isEmpty)
    open(c, 0)
    commit(c, 0, Seq(0, 1), "first")
    commit(c, 0, Seq(2, 3), "other")
    assert(c.stateLoadsOf(0L)(store).bytes.toSeq == Seq(5L, 5L, 5L, 5L))
    open(c, 1)
    commit(c, 1, Seq(1, 3), "three")
    commit(c, 1, Seq(1), "two")
    val load = c.stateLoadsOf(0L)(store)
    assert(load.bytes.toSeq == Seq(5L, 3L, 5L, 5L) && c.stateLoadsOf(7L).isEmpty)
    assert(load.keys.toSeq == load.bytes.toSeq.map(_ * 10) && load.operations.toSeq == load.bytes.toSeq.map(_ * 100))
  }

  test("the holders of a shard are the executors that reported their addresses") {
    val c = commits(root())
    assert(open(c, 0).holders.of(0).isEmpty)
    commit(c, 0, Seq(0, 1), "first")
    commit(c, 0, Seq(2, 3), "other")
    val holders = open(c, 1).holders
    val (first, other) =
      (Holder("executor_h_first", Map("tcp" -> "first")), Holder("executor_h_other", Map("tcp" -> "other")))
    assert((0 until 5).map(holders.of) == Seq(Seq(first), Seq(first), Seq(other), Seq(other), Nil))
    val holding = Holders.of(Array("a", null, "b"), Array("b", "b"), Map("b" -> Map.empty[String, String]))
    assert(holding.byShard.toSeq == Seq(-1, -1, 0) && holding.replicas.toSeq == Seq(0, 0))
    // The replica comes after the owner.
    c.copied(0L, "executor_h_other", Seq(0, 1, 2), Seq(0, 2))
    commit(c, 1, Seq(0, 1), "first")
    commit(c, 1, Seq(2, 3), "other")
    val copies = open(c, 2).holders
    assert((0 until 3).map(copies.of) == Seq(Seq(first, other), Seq(first), Seq(other)))
    // A replica that was not copied again is dropped.
    c.copied(0L, "executor_h_other", Seq(0), Nil)
    assert(c.replicasOf(0L).toSeq == Seq(null, null, "executor_h_other"))
  }

  test("an ending executor offers its shards to the others, at the lineage that the next batch needs") {
    val c = commits(root())
    assert(c.handOver("executor_h_first").isEmpty)
    open(c, 0)
    val lineage = commit(c, 0, Seq(0, 1), "first")
    // There is no other executor yet that could take the shards.
    assert(c.handOver("executor_h_first").isEmpty)
    commit(c, 0, Seq(2), "other")
    commit(c, 0, Seq(3), "third")
    def offered(): Map[String, Seq[(Long, Int, UUID)]] = c.handOver("executor_h_first").map { h =>
      val offer = ShardOffer.decode(h.offer)
      assert(h.to.addresses == Map("tcp" -> h.to.executor.stripPrefix("executor_h_")))
      assert((offer.stateRoot, offer.baseShards) == (c.stateRoot, shardCount))
      assert((offer.executor, offer.addresses) == ("executor_h_first", Map("tcp" -> "first")))
      h.to.executor -> offer.stores.flatMap { s =>
        assert(s.store == store)
        s.shards.map { case (shard, lineage) => (s.version, shard, lineage) }
      }
    }.toMap
    val wanted = Map("executor_h_other" -> Seq((1L, 0, lineage)), "executor_h_third" -> Seq((1L, 1, lineage)))
    assert(offered() == wanted)
    val base = open(c, 1).base.stores(store)
    assert(offered() == wanted && Seq(0, 1).forall(base.lineage(_) == lineage))
    assert(c.handOver("executor_h_unknown").isEmpty)
    c.handedOver(ShardsHandedOver(c.runId, 0L, "executor_h_first", "executor_h_other", Array(0, 2, 9)))
    assert(c.ownersOf(0L).toSeq == Seq("other", "first", "other", "third").map("executor_h_" + _))
    // A shard keeps an owner that has committed it since.
    commit(c, 1, Seq(1), "third")
    c.handedOver(ShardsHandedOver(c.runId, 0L, "executor_h_first", "executor_h_other", Array(1)))
    assert(c.ownersOf(0L)(1) == "executor_h_third")
    c.handedOver(ShardsHandedOver(c.runId, 7L, "executor_h_first", "executor_h_other", Array(1)))
  }

  test("shards that do not fit into one offer are split into several") {
    val n = 25000
    val c = commits(root(), shards = n)
    c.open(BatchSpec(c.runId, c.stateRoot, 0L, n, Seq(region)))(Map(0L -> Layout(n)))
    commit(c, 0, 0 until n - 1, "first")
    commit(c, 0, Seq(n - 1), "other")
    val offers = c.handOver("executor_h_first").map(_.offer)
    assert(offers.size == 2 && offers.forall(_.length <= 512 * 1024))
    assert(offers.flatMap(ShardOffer.decode(_).shards).sorted == (0 until n - 1))
    assert(c.offers(0L, (0 until n).map(_ -> "executor_h_other")).size == 2)
  }

  test("shards with a planned home are offered there once the next batch is open, in the given order") {
    val c = commits(root())
    open(c, 0)
    val (first, third) = (commit(c, 0, Seq(0, 1, 2), "first"), commit(c, 0, Seq(3), "third"))
    open(c, 1)
    val planned =
      c.offers(0L, Seq(3 -> "executor_h_new", 1 -> "executor_h_new", 0 -> "executor_h_third", 2 -> "executor_h_first"))
    assert(planned.map(_._1) == Seq("executor_h_new", "executor_h_new", "executor_h_third"))
    val offers = planned.map(_._2)
    assert(offers.map(_.executor) == Seq("executor_h_third", "executor_h_first", "executor_h_first"))
    assert(offers.map(_.stores.flatMap(s => s.shards.map((s.version, _)))) == Seq(
      Seq((1L, (3, third))),
      Seq((1L, (1, first))),
      Seq((1L, (0, first)))
    ))
    assert(c.offers(7L, Seq(3 -> "executor_h_new")).isEmpty)
    c.cameAhead(1L, 0L, "executor_h_new", Seq(3 -> "local", 1 -> "local"))
    assert(c.ownersOf(0L).toSeq == Seq("first", "new", "first", "new").map("executor_h_" + _))
    assert(c.movedOf(0L).ahead == 2 && c.movedOf(0L).bytes == "third".length + "first".length)
    // An executor that has committed a shard since has newer content. Reports for a closed batch are ignored.
    commit(c, 1, Seq(0), "other")
    c.cameAhead(1L, 0L, "executor_h_third", Seq(0 -> "local"))
    c.cameAhead(0L, 0L, "executor_h_third", Seq(2 -> "local"))
    assert(c.ownersOf(0L).toSeq == Seq("other", "new", "first", "new").map("executor_h_" + _))
  }

  test("shards that came to another executor and the time to bring them are counted per batch") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "first")
    assert(c.movedOf(0L) == MovedState(0, "first".length, Map("first" -> 4)))
    open(c, 1)
    commit(c, 1, Seq(0, 1, 2), "first")
    commit(c, 1, Seq(3), "other")
    val brought = Map("first" -> 3, "other" -> 1)
    assert(c.movedOf(0L) == MovedState("other".length, "first".length + "other".length, brought))
    assert(c.movedOf(0L).inWords == "first 3, other 1" && MovedState.Nothing.inWords.isEmpty)
    assert(c.movedOf(7L) == MovedState.Nothing)
    open(c, 2)
    assert(c.movedOf(0L) == MovedState.Nothing)
    commit(c, 2, Seq(0, 3), "other")
    commit(c, 2, Seq(1, 2), "third")
    assert(c.movedOf(0L).bytes == "other".length + 2 * "third".length)
  }

  test("an attempt of a closed batch is rejected and changes nothing") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    open(c, 1)
    val e = intercept[PenstockException](commit(c, 0, 0 until 4, "zombie"))
    assert(e.errorClass === "PENSTOCK_BATCH_CLOSED")
    assert(content(c.stateRoot, 0).map(_("k0")) === (0 until 4).map(s => s"a-$s"))
  }

  test("an incomplete batch stops the query, and the error says what to do") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, Seq(0, 1, 2), "a")
    val e = intercept[PenstockException](open(c, 1))
    assert(e.errorClass === "PENSTOCK_STATE_INCOMPLETE")
    assert(
      e.getMessage.contains("1 of 4 shards of operator 0") && e.getMessage.contains("remove commits/0 and offsets/1")
    )
  }

  test("a new run continues the newest generation, and a rerun batch gets a higher generation") {
    val at = root()
    val first = commits(at)
    open(first, 0)
    commit(first, 0, 0 until 4, "a")
    open(first, 1)
    commit(first, 1, 0 until 4, "lost", inline = false)
    val second = commits(at)
    open(second, 1)
    commit(second, 1, 0 until 2, "again", inline = false)
    commit(second, 1, 2 until 4, "again")
    assert(manifests(at) === Seq("0.0", "1.0", "1.1"))
    assert(content(at, 1).map(_("k1")) === (0 until 4).map(s => s"again-$s"))
    assert(content(at, 1).map(_("k0")) === (0 until 4).map(s => s"a-$s"))
  }

  test("of two concurrent runs the second to finish a batch is stopped, and nothing is overwritten") {
    val at = root()
    val first = commits(at)
    val second = commits(at)
    Seq(first, second).foreach(open(_, 0))
    commit(first, 0, 0 until 4, "first")
    val e = intercept[PenstockException](commit(second, 0, 0 until 4, "second"))
    assert(e.errorClass === "PENSTOCK_CONCURRENT_RUN" && e.getMessage.contains("0.0"))
    assert(content(at, 0).map(_("k0")) === (0 until 4).map(s => s"first-$s"))
  }

  test("a run continues its own generation, whatever another run writes for the same batch") {
    val at = root()
    val first = commits(at)
    open(first, 0)
    commit(first, 0, 0 until 4, "a")
    val second = commits(at)
    open(second, 0)
    commit(second, 0, 0 until 4, "a")
    open(first, 1)
    commit(first, 1, 0 until 4, "b")
    assert(manifests(at) === Seq("0.0", "0.1", "1.0"))
    val history = new ShardHistory(new StateDirectory(at, hadoop), store, 2, end = 2)
    val d = new StateDirectory(at, hadoop)
    assert(d.readManifest(1, 0).baseGeneration === 0L)
    val keys = history.replay(0, 2).familyOrNull("default").table
    assert(Seq("k0", "k1").forall(k => keys.find(new KeyBytes().set(k.getBytes)) >= 0))
    new StateCleaner(d, minBatches = 1).clean(1L)
    assert(manifests(at) === Seq("0.0", "0.1", "1.0"))
  }

  test("an attempt fails if its manifest cannot be written, and the next one makes the batch durable") {
    val at = root()
    // Both the file that was created ahead and the file written in its place fail.
    val full = Seq.fill(2)("publish manifests/0 fail")
    val unreported = Seq("publish manifests/1 fail", "published manifests/1 fail")
    val c = commits(at, faults = full ++ unreported :+ "published manifests/2 exists")
    open(c, 0)
    commit(c, 0, Seq(0, 1), "a")
    val lost = intercept[PenstockException](commit(c, 0, Seq(2, 3), "lost"))
    assert(lost.errorClass === "PENSTOCK_CANNOT_WRITE" && lost.detail.contains("manifests/0.0"))
    assert(manifests(at).isEmpty)
    commit(c, 0, Seq(2, 3), "b")
    open(c, 1)
    intercept[PenstockException](commit(c, 1, 0 until 4, "reported as lost"))
    commit(c, 1, 0 until 4, "c")
    open(c, 2)
    commit(c, 2, 0 until 4, "d")
    assert(manifests(at) === Seq("0.1", "1.0", "1.1", "2.0"))
    assert(content(at, 2)(2) === Map("k0" -> "b-2", "k1" -> "c-2", "k2" -> "d-2"))
    assert(new StateDirectory(at, hadoop).readManifest(2, 0).baseGeneration === 1L)
  }

  test("another number of shards and a missing manifest are rejected") {
    val at = root()
    val c = commits(at)
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    val other = commits(at, shards = 8)
    val e = intercept[PenstockException](
      other.open(BatchSpec(other.runId, at, 1L, 8, Seq(region)))(Map.empty)
    )
    assert(e.errorClass === "PENSTOCK_SHARDS_CHANGED" && e.getMessage.contains("spark.penstock.shards=4"))
    val gap = intercept[PenstockException](open(commits(at), 7))
    assert(gap.errorClass === "PENSTOCK_STATE_MISSING" && gap.getMessage.contains("no manifest of that batch"))
  }

  test("a manifest that does not match the query is rejected before a task runs") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    val m = new StateDirectory(c.stateRoot, hadoop).readManifest(0, 0)
    def refused(m: Manifest): PenstockException = {
      val body = ManifestFormat.encode(m, Container.InManifest(0, 0))
      val file = Path.of(c.stateRoot, "_penstock", "manifests", "0.0")
      Files.write(file, FileFormat.frame(FileFormat.Kind.Manifest, body))
      intercept[PenstockException](open(commits(c.stateRoot), 1))
    }
    val shards = refused(m.copy(shardCount = 8, stores = Map(store -> Vector.fill(8)(ShardRefs.Empty))))
    assert(shards.errorClass === "PENSTOCK_CORRUPT_FILE" && shards.detail.contains("manifests/0.0"))
    val single = refused(m.copy(stores = Map(store -> Vector(ShardRefs.Empty))))
    assert(single.errorClass === "PENSTOCK_STATE_MISSING" && single.detail.contains("1 of 4 shards in store default"))
  }

  test("a snapshot from the state's history shortens the chain, one of a lost attempt does not") {
    val c = commits(root())
    (0L until 5L).foreach { b =>
      open(c, b)
      commit(c, b, 0 until 4, s"v$b")
    }
    open(c, 5)
    val d = new StateDirectory(c.stateRoot, hadoop)
    val before = d.readManifest(4, 0).stores(store)
    val newest = d.readManifest(4, 0)
    val file =
      snapshot(
        c,
        5,
        Seq(1 -> before(1).lineage, 2 -> UUID.randomUUID()).map { case (s, lineage) =>
          (s, lineage, contentOf(c, newest, s)(_))
        }
      )
    commit(c, 5, 0 until 4, "v5")
    val after = d.readManifest(5, 0).stores(store)
    assert(after(1).snapshot.map(_.section.container) === Some(file) && after(1).deltas.size === 1)
    assert(after(2).snapshot.isEmpty && after(2).deltas.size === 6)
    assert(content(c.stateRoot, 5)(1) === (0 to 5).map(b => s"k$b" -> s"v$b-1").toMap)
    val expected = content(c.stateRoot, 5)
    val path = Path.of(c.stateRoot, "_penstock", file.path)
    val intact = Files.readAllBytes(path)
    Files.write(path, intact.updated(intact.length - 1, (intact.last ^ 1).toByte))
    assert(content(c.stateRoot, 5) === expected)
    Files.delete(path)
    assert(content(c.stateRoot, 5) === expected)
    // Without the manifests that name the changes the snapshot cannot be replaced.
    val manifest = Path.of(c.stateRoot, "_penstock", "manifests", "4.0")
    val aside = Files.move(manifest, manifest.resolveSibling(".4.0.aside"))
    val lost = intercept[PenstockException](new ShardLoader(d).loadOne(d.readManifest(5, 0), store, 1))
    assert(
      lost.errorClass === "PENSTOCK_MISSING_FILE" && lost.detail.contains(file.path) && lost.detail.contains("shard 1")
    )
    Files.move(aside, manifest)
    Files.write(path, intact)
    // Another generation of the batch with the same base names the snapshot again.
    commit(c, 5, 0 until 4, "v6")
    assert(d.readManifest(5, 1).stores(store)(1).snapshot.map(_.section.container) === Some(file))
  }

  test("a snapshot that is reported so late that its file may be deleted is not named") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    def run(b: Long): Unit = {
      open(c, b)
      commit(c, b, 0 until 4, s"v$b"): Unit
    }
    (0L to 3L).foreach(run)
    val lineage = d.readManifest(1, 0).stores(store)(1).lineage
    def tell(version: Long): Container =
      snapshot(c, version, Seq((1, lineage, contentOf(c, d.readManifest(1, 0), 1)(_))))
    // With minBatchesToRetain=1 the cleaner may be at batch 4 and have deleted everything older than batch 2.
    tell(1L)
    run(4L)
    assert(d.readManifest(4, 0).stores(store)(1).snapshot.isEmpty)
    val named = tell(3L)
    run(5L)
    assert(d.readManifest(5, 0).stores(store)(1).snapshot.map(_.section.container) === Some(named))
    assert(content(c.stateRoot, 5)(1).size === 6)
  }

  test("a run that retains more batches than its predecessor does not claim deleted ones") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    (0L to 4L).foreach { b =>
      open(c, b)
      commit(c, b, 0 until 4, s"v$b", inline = false): Unit
    }
    new StateCleaner(d, minBatches = 1).clean(4L)
    assert(d.readManifest(4, 0).retainedFrom === 2L && d.manifests().map(_._1).min === 2L)
    // Batch 4 was not committed, so the new run starts from a manifest that claims an earlier batch.
    assert(d.readManifest(3, 0).retainedFrom === 1L)
    val next = commits(c.stateRoot)
    (4L to 5L).foreach { b =>
      open(next, b)
      commit(next, b, 0 until 4, s"w$b"): Unit
    }
    assert(d.readManifest(4, 1).retainedFrom === 2L && d.readManifest(5, 0).retainedFrom === 2L)
  }

  test("a damaged manifest of a batch that runs again is not needed") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    (0L to 4L).foreach { b =>
      open(c, b)
      commit(c, b, 0 until 4, s"v$b"): Unit
    }
    val damaged = Path.of(c.stateRoot, "_penstock", "manifests", "4.0")
    Files.write(damaged, Array.fill[Byte](Files.size(damaged).toInt)(7))
    Files.deleteIfExists(damaged.resolveSibling(".4.0.crc"))
    val next = commits(c.stateRoot)
    open(next, 4)
    commit(next, 4, 0 until 4, "w4")
    assert(d.readManifest(4, 1).retainedFrom === 1L && content(c.stateRoot, 4).forall(_.size === 5))
  }

  test("a run that goes back further than was retained can be read") {
    val c = commits(root(), minBatches = 1)
    val d = new StateDirectory(c.stateRoot, hadoop)
    (0L to 6L).foreach { b =>
      open(c, b)
      commit(c, b, 0 until 4, s"v$b"): Unit
    }
    assert(d.readManifest(6, 0).retainedFrom === 4L)
    val next = commits(c.stateRoot)
    open(next, 3)
    commit(next, 3, 0 until 4, "w3")
    assert(d.readManifest(3, 1).retainedFrom === 3L && content(c.stateRoot, 3).forall(_.size === 4))
  }

  test("the cleaner keeps every retained batch complete, whatever the order of writes") {
    val r = new Random(23)
    val c = commits(root())
    val d = new StateDirectory(c.stateRoot, hadoop)
    (0L until 30L).foreach { b =>
      open(c, b)
      (0 until 1 + r.nextInt(2)).foreach { g =>
        commit(c, b, Seq(0, 1), s"g$g", inline = r.nextBoolean())
        commit(c, b, Seq(2, 3), s"g$g", inline = r.nextBoolean())
      }
    }
    new StateCleaner(d, minBatches = 4).clean(29L)
    // Older manifests remain only if their payload is part of the state.
    val (older, retained) = d.manifests().map(_._1).distinct.sorted.partition(_ < 24)
    assert(retained === (24L to 29L) && older.size < 24)
    (24L to 29L).foreach(b => assert(content(c.stateRoot, b).forall(_.size === b + 1)))
  }

  test("a pinned hash has its own chain of deltas, which ends when its slot is reused") {
    val c = commits(root())
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    val pinned = Layout(4).pinning(Set(9))
    val begun = open(c, 1, pinned)
    assert(begun.layout == pinned && begun.base.stores(store).layout == Layout(4))
    assert(begun.base.stores(store).lineage(4, pinned) == ShardRefs.NeverWritten)
    // The layout of a batch is fixed when the batch is first opened.
    assert(open(c, 1, Layout(4)).layout == pinned)
    commit(c, 1, 0 until 4, "b")
    assert(manifests(c.stateRoot) === Seq("0.0"), "the pinned shard has not committed")
    val lineage = commit(c, 1, Seq(4), "b")

    val next = open(c, 2, pinned)
    assert(next.base.stores(store).layout == pinned && next.base.stores(store).lineage(4, pinned) == lineage)
    commit(c, 2, 0 until 5, "c")
    val d = new StateDirectory(c.stateRoot, hadoop)
    assert(d.readManifest(2, 0).stores(store)(4).deltas.map(_.version) == Vector(2L, 3L))

    val other = Layout(4).pinning(Set(-3))
    val reused = open(c, 3, other).base.stores(store)
    assert(reused.lineage(4, other) == ShardRefs.NeverWritten && reused.lineage(3, other) != ShardRefs.NeverWritten)
    commit(c, 3, 0 until 5, "d")
    val m = d.readManifest(3, 0)
    assert(m.layout(store) == other && m.stores(store)(4).deltas.map(_.version) == Vector(4L))
    open(c, 4)
    commit(c, 4, 0 until 4, "e")
    assert(d.readManifest(4, 0).stores(store).size == 4 && d.readManifest(4, 0).pinSlots.isEmpty)
  }
}
