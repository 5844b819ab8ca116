package org.apache.spark.sql.penstock.commit

import java.util.UUID

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.internal.Logging
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.state.{QueryDescription, StateDirectory}

import io.penstock.errors.PenstockException
import io.penstock.routing.Division
import io.penstock.sharding.Layout
import io.penstock.state.format._
import io.penstock.telemetry.{MovedState, StateLoad}

/**
 * The commits of one query run, on the driver: collects what tasks tell and makes a batch's state durable with one
 * manifest, before the last of its tasks may finish. Docs: PROTOCOL.md, "Commit".
 *
 * @param shardCount
 *   S
 * @param wantedShards
 *   number of shards that the application asks for, if it does
 * @param report
 *   tells Spark that a state partition of a store has committed a version, where Spark counts
 */
final class QueryCommits(
    val runId: UUID,
    val stateRoot: String,
    shardCount: Int,
    hadoopConf: Configuration,
    wantedShards: Option[Int] = None,
    report: (StoreKey, Int, Long) => Unit = (_, _, _) => ()
) extends Logging {
  import QueryCommits._

  private val directory = new StateDirectory(stateRoot, hadoopConf)
  private val minBatches =
    hadoopConf.getInt(SQLConf.MIN_BATCHES_TO_RETAIN.key, SQLConf.MIN_BATCHES_TO_RETAIN.defaultValue.get)
  private val cleaner = new StateCleaner(directory, minBatches)
  @volatile private var batch: OpenBatch = _

  /**
   * Newest generation of each batch's manifest as this run found it. Only batches that an earlier run has tried have
   * one: to list the folder again in every batch would be slow where a file system is far away.
   */
  private lazy val earlier: Map[Long, Long] = directory.newestGenerations()
  private val owners = mutable.Map[Long, Array[String]]()

  /** Executors that have a second copy of shards, as the batch before the last that they told of had left them. */
  private val replicas = mutable.Map[Long, Array[String]]()
  private val couriers = mutable.Map[String, Map[String, String]]()
  private val loads = new StateLoads
  private val moved = mutable.Map[Long, MovedState]()
  private val snapshots = mutable.Map[(StoreKey, Int), SnapshotRef]()
  @volatile private var newest: Option[Manifest] = None
  @volatile private var written = StateReport.Empty

  /**
   * Starts a batch: from here on commits of the batch before are refused. Idempotent per batch.
   *
   * @param layouts
   *   of the state of each region in the batch; asked for when the batch before is known to be good, once
   * @return
   *   lease of each region
   */
  def open(spec: BatchSpec)(layouts: => Map[Long, Layout]): Map[Long, RegionLease] = synchronized {
    if (batch == null || batch.spec.batchId != spec.batchId) {
      val base = if (spec.batchId == 0L) firstBatch() else stateBefore(spec)
      spec.regions.foreach(verifyStores(spec, _, base))
      val holding = (owners.valuesIterator ++ replicas.valuesIterator).flatten.toSet
      couriers.filterInPlace((executor, _) => holding(executor))
      moved.clear()
      batch = new OpenBatch(spec, layouts, base, earlier.getOrElse(spec.batchId, -1L))
    }
    spec.regions.map(r => r.region -> lease(spec, r, batch)).toMap
  }

  /**
   * Takes the commit of a task attempt. Returns when the state of the whole batch is durable, if this was the last one,
   * and at once otherwise. An attempt that commits what another one has committed before takes its place.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_BATCH_CLOSED for an attempt of a batch that is over
   */
  def committed(c: TaskCommitted): Unit = synchronized {
    if (batch == null || c.batchId != batch.spec.batchId) {
      throw new PenstockException(
        "PENSTOCK_BATCH_CLOSED",
        s"task attempt ${c.taskAttemptId} commits batch ${c.batchId} of run $runId, but the query is at batch " +
          s"${if (batch == null) "none" else batch.spec.batchId}: the attempt came too late and counts for nothing"
      )
    }
    batch.told(c)
    if (c.courier.isEmpty) couriers -= c.executor else couriers(c.executor) = c.courier
    for ((region, stores) <- c.stores.groupBy(s => batch.regionOf(s.store.operatorId)); r <- region) {
      val of = owners.get(r).filter(_.length >= batch.layout(r).shards).getOrElse {
        java.util.Arrays.copyOf(ownersOf(r), batch.layout(r).shards)
      }
      moved(r) = stores.foldLeft(movedOf(r))((sum, s) =>
        sum + MovedState(bytesFromOthers(of, s, c.executor), s.loadNs, s.brought)
      )
      stores.foreach { s =>
        s.shards.foreach(own(r, of, _, c.executor))
        loads.told(r, s)
      }
      owners(r) = of
    }
    if (batch.complete) writeManifest()
  }

  /**
   * What an executor that ends is to hand over: what it has in memory, to those that have shards as well, by size. Nothing where
   * there is nobody.
   *
   * @param executor
   *   as a task location
   */
  def handOver(executor: String): Seq[HandOver] = synchronized {
    val takers = couriers.keys.filter(_ != executor).toSeq.sorted
    if (batch == null || takers.isEmpty || !couriers.contains(executor)) Nil
    else
      for {
        region <- batch.spec.regions
        of = owners.getOrElse(region.region, Array.empty[String])
        shards = of.indices.filter(of(_) == executor)
        bytes = loads.bytesOf(region.region, of.length)
        (part, its) <- shards.zip(Division.of(shards.map(bytes(_)).toArray, takers.size)).groupMap(_._2)(_._1).toSeq
        stores = region.stores.flatMap(key => batch.held(key, its))
        if stores.nonEmpty
      } yield {
        val offer =
          ShardOffer(stateRoot, batch.layout(region.region).home, executor, couriers(executor), stores)
        HandOver(runId, region.region, Holder(takers(part), couriers(takers(part))), ShardOffer.encode(offer))
      }
  }

  /**
   * What executors are to be told so that shards come to them while the batch that is open begins: from each that has some of
   * them to each that is to have them.
   *
   * @param to
   *   shards in the order in which they matter, each with the executor that is to have it, as a task location
   * @return
   *   offers in that order, each with the executor that is to be told
   */
  def offers(region: Long, to: Seq[(Int, String)]): Seq[(String, ShardOffer)] = synchronized {
    val of = owners.getOrElse(region, Array.empty[String])
    val ways = to.filter { case (s, executor) => s < of.length && of(s) != executor && couriers.contains(of(s)) }
      .groupMap { case (s, executor) => (of(s), executor) }(_._1)
    for {
      ((from, executor), shards) <- ways.toSeq.sortBy(w => to.indexWhere(_._1 == w._2.head))
      r <- batch.spec.regions.find(_.region == region).toSeq
      stores = r.stores.flatMap(key => batch.held(key, shards))
      if stores.nonEmpty
    } yield executor -> ShardOffer(stateRoot, batch.layout(region).home, from, couriers(from), stores)
  }

  /** Takes note of who has shards in memory now that another had. */
  def handedOver(m: ShardsHandedOver): Unit = synchronized {
    owners.get(m.region).foreach(of => m.shards.foreach(s => if (s < of.length && of(s) == m.from) of(s) = m.to))
  }

  /**
   * Takes note of shards that came to an executor ahead of a batch.
   *
   * @param batchId
   *   that batch
   * @param executor
   *   where they are now
   * @param shards
   *   each with the transport that brought it
   */
  def cameAhead(batchId: Long, region: Long, executor: String, shards: Seq[(Int, String)]): Unit = synchronized {
    owners.get(region).filter(_ => batchId == this.batchId).foreach { of =>
      val bytes = loads.bytesOf(region, of.length)
      // Who has committed a shard since has more of it.
      val known = shards.filter { case (s, _) => s < of.length && of(s) != executor && batch.isUntouched(region, s) }
      known.foreach { case (s, _) => own(region, of, s, executor) }
      val came = known.map(s => bytes(s._1)).sum
      moved(region) = movedOf(region) + MovedState(came, 0L, ahead = known.size, aheadBytes = came)
    }
  }

  /**
   * Takes note of shards that executors have a copy of, besides their owners.
   *
   * @param asked
   *   what the executor was told to take
   * @param shards
   *   what it has of that
   */
  def copied(region: Long, executor: String, asked: Seq[Int], shards: Seq[Int]): Unit = synchronized {
    val of = replicasFor(region, asked.maxOption.getOrElse(-1))
    val has = shards.toSet
    asked.foreach(s => if (has(s)) of(s) = executor else if (of(s) == executor) of(s) = null)
  }

  /** What there is to be written to, with room for a shard. */
  private def replicasFor(region: Long, shard: Int): Array[String] = {
    val known = replicas.getOrElse(region, Array.empty[String])
    if (shard >= known.length) replicas(region) = java.util.Arrays.copyOf(known, shard + 1)
    replicas.getOrElse(region, known)
  }

  /** Executor that has a copy of each shard besides its owner, as a task location; null, or no entry, where none has. */
  def replicasOf(region: Long): Array[String] = synchronized {
    replicas.get(region).fold(Array.empty[String])(_.clone())
  }

  /** An executor has a shard now; who had it keeps what it had for a while. */
  private def own(region: Long, owners: Array[String], shard: Int, executor: String): Unit = {
    val before = owners(shard)
    owners(shard) = executor
    if (before != null && before != executor) replicasFor(region, shard)(shard) = before
  }

  /** Size of what a commit's task had to bring from other executors. */
  private def bytesFromOthers(owners: Array[String], of: StoreCommit, executor: String): Long =
    of.shards.indices.filter { i =>
      val before = owners(of.shards(i))
      before != null && before != executor
    }.map(of.state.bytes(_)).sum

  /** Takes note of snapshots: the next manifest refers to those that belong to the state's history. */
  def snapshotsWritten(m: SnapshotsWritten): Unit = synchronized {
    written = written.copy(
      snapshotFiles = written.snapshotFiles + 1,
      snapshotShards = written.snapshotShards + m.entries.size,
      snapshotBytes = written.snapshotBytes + m.entries.map(_.section.length.toLong).sum
    )
    m.entries.foreach { e =>
      val s = e.section
      snapshots((s.store, s.shard)) =
        SnapshotRef(e.version, e.lineage, SectionRef(m.container, m.payloadAt + s.offset, s.length, s.crc))
    }
  }

  /** What there is to tell of the state. Waits for nothing. */
  def report: StateReport =
    written.copy(
      lags = newest.fold(Seq.empty[SnapshotLag])(SnapshotLag.of),
      loads = loads.all,
      filesDeleted = cleaner.deleted
    )

  /** The batch that the query is at; -1 before the first. */
  def batchId: Long = Option(batch).fold(-1L)(_.spec.batchId)

  /** Task location of the executor that committed each shard last; null where unknown. */
  def ownersOf(region: Long): Array[String] = synchronized {
    owners.get(region).map(_.clone()).getOrElse(new Array[String](shardCount))
  }

  /** What the state of each shard of a region's stores amounts to, as told last. Waits for nothing. */
  def stateLoadsOf(region: Long): Map[StoreKey, StateLoad] = loads.of(region)

  /** State of a region that the newest batch had to bring to where its tasks run. */
  def movedOf(region: Long): MovedState = synchronized(moved.getOrElse(region, MovedState.Nothing))

  private def firstBatch(): Manifest = {
    describe()
    Manifest(-1L, -1L, -1L, 0L, runId, 0L, shardCount, Map.empty)
  }

  private def describe(): Unit = directory.readDescription() match {
    case Some(d) =>
      verifyQuery(d)
      (wantedShards.toSeq :+ shardCount).find(_ != d.shardCount).foreach { wanted =>
        throw new PenstockException(
          "PENSTOCK_SHARDS_CHANGED",
          s"the checkpoint of $stateRoot has ${d.shardCount} shards, and $wanted are asked for; the number is fixed with a " +
            s"query's first batch: set spark.penstock.shards=${d.shardCount}, or start a new checkpoint"
        )
      }
    case None => directory.writeDescription(QueryDescription(shardCount, "penstock", directory.queryId))
  }

  private def verifyQuery(d: QueryDescription): Unit = {
    val id = directory.queryId
    if (d.queryId.nonEmpty && id.nonEmpty && d.queryId != id) {
      throw new PenstockException(
        "PENSTOCK_OTHER_QUERY",
        s"the state in $stateRoot was written by query ${d.queryId}, but the checkpoint around it is of query $id: two " +
          "checkpoints have been mixed. Nothing was changed. Put the state back where it belongs, or restore this checkpoint"
      )
    }
  }

  private def stateBefore(spec: BatchSpec): Manifest = {
    val previous = spec.batchId - 1
    val known = Option(batch).filter(b => b.spec.batchId == previous)
    known match {
      case Some(b) =>
        b.written.getOrElse(throw new PenstockException(
          "PENSTOCK_STATE_INCOMPLETE",
          s"batch $previous of run $runId ended although ${b.missing} did not commit state; a foreachBatch function " +
            "must read the whole of its Dataset in every batch (show, take, first, isEmpty and limit read a part). " +
            s"Nothing of batch $previous is kept: remove commits/$previous from the checkpoint to run it again"
        ))
      case None =>
        describe()
        earlier.get(previous) match {
          case Some(g) =>
            val m = directory.readManifest(previous, g)
            if (m.shardCount != shardCount) {
              throw FileFormat.corrupt(
                directory.name(Container.InManifest(previous, g).path),
                FileFormat.HeaderBytes,
                s"it has ${m.shardCount} shards, and the query $shardCount"
              )
            }
            m
          case None =>
            throw new PenstockException(
              "PENSTOCK_STATE_MISSING",
              s"batch ${spec.batchId} is to start from the state of batch $previous, but $stateRoot has no manifest of " +
                s"that batch. ${whatIsThere(previous)}"
            )
        }
    }
  }

  private def whatIsThere(batchId: Long): String = earlier.keys.filter(_ < batchId).maxOption match {
    case Some(newest) =>
      s"The newest state is that of batch $newest: the checkpoint was copied while it was written, or files are missing. " +
        s"Restore manifests/$batchId.* and what it names; or delete the entries of offsets and commits later than $newest, " +
        "so that the later batches are computed again (a sink may get their rows a second time)"
    case None => "There is no older state: restore the checkpoint, or start a new one"
  }

  private def verifyStores(spec: BatchSpec, region: RegionSpec, base: Manifest): Unit =
    if (spec.batchId > 0) region.stores.foreach { key =>
      val found = base.stores.get(key)
      if (!found.exists(_.size == (if (region.single) 1 else base.layout(key).shards))) {
        val what = found.fold("no store")(shards => s"${shards.size} of $shardCount shards in store")
        throw new PenstockException(
          "PENSTOCK_STATE_MISSING",
          s"the state of batch ${spec.batchId - 1} in $stateRoot has $what ${key.storeName} of operator " +
            s"${key.operatorId}; the query has changed since: restart the one that wrote the checkpoint, or start a new one"
        )
      }
    }

  private def lease(spec: BatchSpec, region: RegionSpec, batch: OpenBatch): RegionLease = {
    val base = batch.base
    val stores = region.stores.map { key =>
      val layout = base.layout(key)
      val packed = new Array[Long](2 * layout.shards)
      base.stores.getOrElse(key, Vector.empty).iterator.zipWithIndex.foreach { case (r, shard) =>
        packed(2 * shard) = r.lineage.getMostSignificantBits
        packed(2 * shard + 1) = r.lineage.getLeastSignificantBits
      }
      key -> BaseStore(layout, packed)
    }
    val from = BaseState(base.generation, stores.toMap)
    val holders = owners.get(region.region).fold(Holders.Unknown)(Holders.of(_, replicasOf(region.region), couriers))
    RegionLease(runId, stateRoot, spec.batchId, batch.layout(region.region), region, from, holders)
  }

  private def writeManifest(): Unit = {
    val generation = batch.claimGeneration()
    val own = Container.InManifest(batch.spec.batchId, generation)
    val payload = new ByteSink(batch.inlineBytes)
    val now = System.currentTimeMillis()
    snapshots.filterInPlace((_, s) => Reachability.mayName(s.section.container, own.batchId, minBatches))
    val folded = batch.fold(own, payload, snapshots)
    // A run that keeps more than the ones before has not what they deleted.
    val retainedFrom = math.max(batch.base.retainedFrom, Reachability.oldestRetained(own.batchId, minBatches))
    val m =
      Manifest(
        own.batchId,
        generation,
        batch.base.generation,
        retainedFrom,
        runId,
        now,
        shardCount,
        folded,
        batch.places
      )
    val body = ManifestFormat.encode(m, own)
    if (batch.spec.batchId == 0L) {
      // A folder per partition is what Spark's reader of state looks for; it has to be there with the first state.
      batch.spec.regions.foreach(r =>
        r.operators.foreach(o => directory.createPartitionFolders(o.operatorId, if (r.single) 1 else shardCount))
      )
    }
    writeOnce(own, body, payload)
    val isFirst = batch.written.isEmpty
    batch.wrote(m.written(body.length), own)
    newest = batch.written
    if (batch.spec.countedBySpark && isFirst) {
      for ((key, shards) <- folded; shard <- shards.indices.take(shardCount)) report(key, shard, m.batchId + 1)
    }
    cleaner.batchDurable(m.batchId)
    logDebug(s"State of batch ${m.batchId} of run $runId is durable, generation $generation")
  }

  /** A generation's number is used once, so a file of it that this run wrote is there because the write was repeated. */
  private def writeOnce(own: Container.InManifest, body: Array[Byte], payload: ByteSink): Unit =
    try directory.write(own.path, FileFormat.Kind.Manifest, body, payload.array, payload.size)
    catch {
      case e: PenstockException
          if e.errorClass == "PENSTOCK_CONCURRENT_RUN" &&
            directory.readManifest(own.batchId, own.generation).runId == runId =>
        logWarning(s"${own.path} of run $runId was written, and then reported to be there already")
    }
}

object QueryCommits {

  /** A batch whose tasks may commit. */
  final private class OpenBatch(
      val spec: BatchSpec,
      layouts: Map[Long, Layout],
      val base: Manifest,
      private var generation: Long
  ) {

    /** The next number; one whose write has failed may be on record all the same, and is not used again. */
    def claimGeneration(): Long = {
      generation += 1
      generation
    }

    private val regions = (for (r <- spec.regions; o <- r.operators) yield o.operatorId -> r).toMap
    private val expected =
      (for (r <- spec.regions; key <- r.stores) yield key -> (if (r.single) 1 else layout(r.region).shards)).toMap

    /** Per store and shard the attempt that counts. */
    private val entries = expected.map { case (k, n) => k -> new Array[Entry](n) }
    private var waitingFor = expected.valuesIterator.sum

    /** What the newest generation of the manifest says; none before the first. */
    var written: Option[Manifest] = None

    def regionOf(operatorId: Long): Option[Long] = regions.get(operatorId).map(_.region)

    def layout(region: Long): Layout = layouts.getOrElse(region, Layout(spec.shardCount))

    /** Pinned hashes of the stores that have any. */
    def places: Map[StoreKey, Vector[Option[Int]]] =
      (for (r <- spec.regions; key <- r.stores) yield key -> layout(r.region).places).filter(_._2.nonEmpty).toMap

    def complete: Boolean = waitingFor == 0

    /** Whether no attempt has committed a shard. */
    def isUntouched(region: Long, shard: Int): Boolean = entries.forall { case (key, of) =>
      regions(key.operatorId).region != region || shard >= of.length || of(shard) == null
    }

    def told(c: TaskCommitted): Unit = c.stores.foreach { s =>
      val of = entries.getOrElse(
        s.store,
        throw new PenstockException(
          "PENSTOCK_UNPLANNED_STORE",
          s"task attempt ${c.taskAttemptId} commits store ${s.store.storeName} of operator ${s.store.operatorId}, which " +
            s"the plan of batch ${spec.batchId} does not have"
        )
      )
      val bySection = s.sections.iterator.map(x => x.shard -> x).toMap
      s.shards.foreach { shard =>
        if (of(shard) == null) waitingFor -= 1
        of(shard) = new Entry(c, bySection.get(shard).orNull)
      }
    }

    /** What is known of shards of a store in the memory of those that ran them last: by version, each with its lineage. */
    def held(key: StoreKey, shards: Seq[Int]): Seq[OfferedStore] = {
      val now = layout(regions(key.operatorId).region)
      val before = base.stores.get(key)
      val of = entries(key)
      val found = shards.filter(_ < of.length).map { shard =>
        val e = of(shard)
        val lineage =
          if (e != null && e.section != null) e.commit.lineage
          else before.filter(_ => now.continues(shard, base.layout(key))).fold(ShardRefs.NeverWritten)(_(shard).lineage)
        (spec.batchId + (if (e == null) 0 else 1), shard, lineage)
      }
      found.filter(_._3 != ShardRefs.NeverWritten).groupBy(_._1).toSeq.map { case (version, these) =>
        OfferedStore(key, version, these.map(s => (s._2, s._3)))
      }
    }

    /** Bytes of changes that no file has yet. */
    def inlineBytes: Int = {
      val waiting = entries.valuesIterator.flatMap(_.iterator).filter(e => e.commit.payload != null).map(_.commit)
      waiting.map(c => c.lineage -> c.payload.length).toMap.valuesIterator.sum
    }

    /** A few words about who is missing. */
    def missing: String = entries.iterator
      .collect {
        case (k, of) if of.contains(null) =>
          s"${of.count(_ == null)} of ${of.length} shards of operator ${k.operatorId}"
      }
      .mkString(", ")

    /** The state after the batch. Inline sections are copied into `payload`, each commit's once. */
    def fold(
        own: Container.InManifest,
        payload: ByteSink,
        snapshots: mutable.Map[(StoreKey, Int), SnapshotRef]
    ): Map[StoreKey, Vector[ShardRefs]] = {
      val placed = mutable.Map[UUID, Long]()
      entries.map { case (key, of) =>
        val before = base.stores.get(key)
        val now = layout(regions(key.operatorId).region)
        key -> Vector.tabulate(of.length) { shard =>
          val kept = before.filter(_ => now.continues(shard, base.layout(key))).fold(ShardRefs.Empty)(_(shard))
          val refs = snapshots.get((key, shard)).flatMap(kept.withSnapshot).getOrElse(kept)
          val e = of(shard)
          if (e.section == null) refs
          else {
            val c = e.commit
            val (container, at) =
              if (e.inManifest != null) (e.inManifest._1, e.inManifest._2)
              else if (c.payload == null) (Container.Changelog(c.batchId, c.lineage), c.payloadAt)
              else {
                val start = placed.getOrElseUpdate(
                  c.lineage, {
                    val p = payload.size.toLong
                    payload.putBytes(c.payload)
                    p
                  }
                )
                (own, start)
              }
            val s = SectionRef(container, at + e.section.offset, e.section.length, e.section.crc)
            refs.copy(deltas = refs.deltas :+ DeltaRef(c.batchId + 1, c.lineage, s))
          }
        }
      }
    }

    /** Notes that a generation is durable; inline payloads are in it now and need not be kept. */
    def wrote(m: Manifest, own: Container.InManifest): Unit = {
      written = Some(m)
      for ((key, of) <- entries; shard <- of.indices) {
        val e = of(shard)
        if (e.section != null && e.commit.payload != null && e.inManifest == null) {
          val at = m.stores(key)(shard).deltas.last.section.offset - e.section.offset
          of(shard) = new Entry(e.commit.copy(payload = Array.emptyByteArray), e.section, (own, at))
        }
      }
    }
  }

  /**
   * @param section
   *   null where the attempt changed nothing in the shard
   * @param inManifest
   *   where the commit's payload was written, once it was
   */
  final private class Entry(
      val commit: TaskCommitted,
      val section: Section,
      val inManifest: (Container.InManifest, Long) = null
  )
}
