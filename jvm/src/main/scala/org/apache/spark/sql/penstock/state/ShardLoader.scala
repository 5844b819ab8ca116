package org.apache.spark.sql.penstock.state

import scala.collection.mutable

import ShardSlot.Loaded
import io.penstock.errors.PenstockException
import io.penstock.state.engine.ShardState
import io.penstock.state.format._

/** Rebuilds shards from snapshots and changelogs as a manifest names them. */
final class ShardLoader(directory: StateDirectory) {

  /**
   * Loads shards and hands each over as soon as it is complete. Every container is opened once for a group of shards;
   * groups are bounded in bytes.
   */
  def load(manifest: Manifest, store: StoreKey, shards: Seq[Int])(use: (Int, Loaded) => Unit): Unit = {
    val refs = ShardLoader.refs(manifest, store, shards, directory)
    groups(shards, refs).foreach { group =>
      val sections = mutable.Map[SectionRef, Array[Byte]]()
      group
        .flatMap(s => (refs(s).snapshot.map(_.section) ++ refs(s).deltas.map(_.section)).map(s -> _))
        .groupBy(_._2.container)
        .foreach { case (container, wanted) =>
          val inOrder = wanted.map(_._2).sortBy(_.offset)
          def neededBy = ShardLoader.needing(manifest, store, wanted.map(_._1).distinct)
          inOrder.zip(directory.readSections(container, inOrder, neededBy)).foreach { case (r, bytes) =>
            sections(r) = bytes
          }
        }
      group.foreach { shard =>
        val r = refs(shard)
        val content = new ShardState
        (r.snapshot.map(_.section) ++ r.deltas.map(_.section)).foreach { s =>
          FileFormat.reading(directory.name(s.container.path), s.offset)(content(sections(s), 0, s.length))
        }
        use(shard, Loaded(content, r.deltas.size, r.deltas.map(_.section.length.toLong).sum))
      }
    }
  }

  /** Loads one shard. */
  def loadOne(manifest: Manifest, store: StoreKey, shard: Int): Loaded = {
    var one: Loaded = null
    load(manifest, store, Seq(shard))((_, loaded) => one = loaded)
    one
  }

  private def groups(shards: Seq[Int], refs: Vector[ShardRefs]): Iterator[Seq[Int]] = {
    def bytes(shard: Int): Long =
      (refs(shard).snapshot.map(_.section.length.toLong) ++ refs(shard).deltas.map(_.section.length.toLong)).sum
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
  private val GroupBytes = 32L << 20

  /**
   * A store's shards.
   *
   * @param wanted
   *   those of them that are asked for
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_STATE_MISSING where the manifest has no such store, or not these shards of it
   */
  def refs(manifest: Manifest, store: StoreKey, wanted: Seq[Int], directory: StateDirectory): Vector[ShardRefs] = {
    def missing(what: String) = throw new PenstockException(
      "PENSTOCK_STATE_MISSING",
      s"the state of batch ${manifest.batchId} in ${directory.stateRoot} has no $what of operator ${store.operatorId}; " +
        "the query has changed since: restart the one that wrote the checkpoint, or start a new one"
    )
    val refs = manifest.stores.getOrElse(store, missing(s"store ${store.storeName}"))
    wanted.find(!refs.indices.contains(_)).foreach(s => missing(s"shard $s of store ${store.storeName}"))
    refs
  }

  /** Says who needs a file. */
  def needing(manifest: Manifest, store: StoreKey, shards: Seq[Int]): String = {
    val more = if (shards.size > 1) s" and ${shards.size - 1} more" else ""
    s"shard ${shards.head}$more of store ${store.storeName} of operator ${store.operatorId}, at version " +
      s"${manifest.batchId + 1} (after batch ${manifest.batchId}),"
  }
}
