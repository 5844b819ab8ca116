package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.sql.penstock.storage.StateDirectory

import ShardSlot.Loaded
import io.penstock.errors.PenstockException
import io.penstock.state.engine.{ShardImage, ShardState}
import io.penstock.state.format._

/**
 * Rebuilds shards from the snapshots and changelogs that a manifest names. If a snapshot cannot be read, the changes
 * that it replaces are used instead, which manifests of earlier batches name.
 */
final class ShardLoader(directory: StateDirectory) extends Logging {

  /**
   * Loads shards, and passes each to `use` as soon as it is complete. Every container is opened once for a group of
   * shards. The bytes of a group are bounded.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_MISSING_FILE, PENSTOCK_CORRUPT_FILE, PENSTOCK_NEWER_FORMAT, PENSTOCK_STATE_MISSING
   */
  def load(manifest: Manifest, store: StoreKey, shards: Seq[Int])(use: (Int, Loaded) => Unit): Unit = {
    val refs = ShardLoader.refs(manifest, store, shards, directory)
    groups(shards, refs).foreach { group =>
      def needing(needed: Seq[Int]) = ShardLoader.needing(manifest, store, needed)
      val parts =
        try Some(read(group.map(s => s -> refs(s)), needing))
        // The shards are read one by one below, so that only those fail whose files are damaged.
        catch { case e: PenstockException if isDamage(e) => None }
      group.foreach { shard =>
        val loaded =
          try rebuild(refs(shard), parts.getOrElse(read(Seq(shard -> refs(shard)), needing)), needing(Seq(shard)))
          catch { case e: PenstockException if isDamage(e) => withoutSnapshot(manifest, store, shard, refs(shard), e) }
        use(shard, loaded)
      }
    }
  }

  /** Loads one shard. */
  def loadOne(manifest: Manifest, store: StoreKey, shard: Int): Loaded = {
    var one: Loaded = null
    load(manifest, store, Seq(shard))((_, loaded) => one = loaded)
    one
  }

  /**
   * Reads change sets of shards.
   *
   * @param wanted
   *   shards with the change sets to read, in the order in which they apply
   * @return
   *   change sets of the same shards; empty if a file cannot be read, which may not be needed to load the whole shards
   */
  def changes(manifest: Manifest, store: StoreKey, wanted: Seq[(Int, Vector[DeltaRef])]): Map[Int, Seq[Array[Byte]]] =
    try {
      val refsOfShards = wanted.map { case (shard, deltas) => shard -> ShardRefs(None, deltas) }
      val parts = read(refsOfShards, ShardLoader.needing(manifest, store, _))
      refsOfShards.map { case (shard, refs) => shard -> refs.deltas.map(d => parts.changes(d.section)) }.toMap
    } catch { case e: PenstockException if isDamage(e) => Map.empty }

  private def read(shards: Seq[(Int, ShardRefs)], needing: Seq[Int] => String): ShardLoader.Parts = {
    def from[A](sections: Seq[(Int, SectionRef)])(read: SectionBytes => A): Map[SectionRef, A] =
      sections.groupBy(_._2.container).flatMap { case (container, wanted) =>
        val inOrder = wanted.map(_._2).sortBy(_.offset)
        inOrder.zip(directory.readSections(container, inOrder, needing(wanted.map(_._1).distinct))(read))
      }
    ShardLoader.Parts(
      from(for ((shard, refs) <- shards; s <- refs.snapshot) yield shard -> s.section)(ShardImage.read),
      from(for ((shard, refs) <- shards; d <- refs.deltas) yield shard -> d.section)(_.takeAll())
    )
  }

  private def rebuild(refs: ShardRefs, parts: ShardLoader.Parts, neededBy: => String): Loaded = {
    val content = refs.snapshot.fold(new ShardState)(s => parts.images(s.section))
    FileFormat.needed(neededBy) {
      refs.deltas.map(_.section).foreach { s =>
        FileFormat.reading(directory.name(s.container.path), s.offset)(content(parts.changes(s), 0, s.length))
      }
    }
    Loaded(content, refs.deltas.size, refs.deltas.map(_.section.length.toLong).sum)
  }

  /**
   * Rebuilds a shard from the changes that its unreadable snapshot replaces. Throws `failure` if that is impossible.
   */
  private def withoutSnapshot(
      manifest: Manifest,
      store: StoreKey,
      shard: Int,
      refs: ShardRefs,
      failure: PenstockException
  ): Loaded = {
    def attempt[A](body: => A): Option[A] =
      try Some(body)
      catch { case e: PenstockException if isDamage(e) => None }
    val earlier = Iterator.unfold(manifest) { m =>
      if (m.baseGeneration < 0) None
      else attempt(directory.readManifest(m.batchId - 1, m.baseGeneration)).map(before => (before, before))
    }
    val alternatives = for {
      snapshot <- refs.snapshot.iterator
      before <- earlier
      shards <- before.stores.get(store).iterator
      // A pin slot that was added since then has no shard in that manifest.
      refsThen <- shards.lift(shard).iterator
      same <- refsThen.upTo(snapshot.lineage).iterator
      if !same.snapshot.contains(snapshot)
    } yield ShardRefs(same.snapshot, same.deltas ++ refs.deltas)
    def neededBy = ShardLoader.needing(manifest, store, Seq(shard))
    val loaded = alternatives
      .map(other => attempt(rebuild(other, read(Seq(shard -> other), _ => neededBy), neededBy)))
      .collectFirst { case Some(loaded) => loaded }
      .getOrElse(throw failure)
    logWarning(s"A snapshot of shard $shard cannot be read. The changes that it replaces were read instead", failure)
    loaded
  }

  private def isDamage(e: PenstockException): Boolean =
    e.errorClass == "PENSTOCK_MISSING_FILE" || e.errorClass == "PENSTOCK_CORRUPT_FILE"

  private def groups(shards: Seq[Int], refs: Vector[ShardRefs]): Iterator[Seq[Int]] = {
    def bytes(shard: Int): Long = refs(shard).sections.map(_.length.toLong).sum
    val out = mutable.ArrayBuffer(mutable.ArrayBuffer[Int]())
    var sum = 0L
    shards.foreach { s =>
      if (sum > ShardLoader.GroupBytes) {
        out += mutable.ArrayBuffer[Int]()
        sum = 0L
      }
      out.last += s
      sum += bytes(s)
    }
    out.iterator.map(_.toSeq).filter(_.nonEmpty)
  }
}

object ShardLoader {
  private val GroupBytes = 64L << 20

  /** What shards are rebuilt from. An image becomes the content of its shard, so it can be used only once. */
  final private case class Parts(images: Map[SectionRef, ShardState], changes: Map[SectionRef, Array[Byte]])

  /**
   * The snapshot and deltas of every shard of a store.
   *
   * @param wanted
   *   shards that the store must have
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_MISSING if the manifest does not have the store, or one of the wanted shards
   */
  def refs(manifest: Manifest, store: StoreKey, wanted: Seq[Int], directory: StateDirectory): Vector[ShardRefs] = {
    def missing(item: String) = throw new PenstockException(
      "PENSTOCK_STATE_MISSING",
      s"the state of batch ${manifest.batchId} in ${directory.stateRoot} has no $item of operator " +
        s"${store.operatorId}. The query has changed since the checkpoint was written. Start the query that wrote " +
        "it, or use a new checkpoint location"
    )
    val refs = manifest.stores.getOrElse(store, missing(s"store ${store.storeName}"))
    wanted.find(!refs.indices.contains(_)).foreach(s => missing(s"shard $s of store ${store.storeName}"))
    refs
  }

  /** Describes the shards that need a file, for error messages. */
  def needing(manifest: Manifest, store: StoreKey, shards: Seq[Int]): String = {
    val more = if (shards.size > 1) s" and ${shards.size - 1} more" else ""
    s"shard ${shards.head}$more of store ${store.storeName} of operator ${store.operatorId}, at version " +
      s"${manifest.batchId + 1} (after batch ${manifest.batchId}),"
  }
}
