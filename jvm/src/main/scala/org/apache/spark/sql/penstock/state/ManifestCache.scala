package org.apache.spark.sql.penstock.state

import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.context.Component
import io.penstock.errors.PenstockException
import io.penstock.state.format.{Container, Manifest, StoreKey}

/**
 * The manifests that this JVM read last. All tasks of a batch on an executor start from the same one.
 *
 * A path, a batch and a generation do not identify a manifest forever: a checkpoint may be deleted or restored while
 * the application runs, and its batch numbers are then used again. A cached manifest is therefore used only if it is
 * known to be the requested one, and is read again otherwise. Decision 071.
 *
 * An object, because readers of state use it too, in applications that run without the plugin. The contexts of the driver
 * and of the executor own it, and empty it.
 */
object ManifestCache extends Component {
  private val Entries = 16
  private val IdentityBytes = 128

  /** Locked while its manifest is read: one task reads it, and others that need it wait. */
  final private class Entry {
    var manifest: Manifest = _

    /** First bytes of the file, which include the checksum of the body, the run and the time of writing. */
    var identity: Array[Byte] = _
  }

  private val cache =
    new java.util.LinkedHashMap[(String, Long, Long), Entry](Entries, 0.75f, true) {
      override def removeEldestEntry(e: java.util.Map.Entry[(String, Long, Long), Entry]): Boolean = size > Entries
    }

  private def entry(directory: StateDirectory, batchId: Long, generation: Long): Entry = cache.synchronized {
    cache.computeIfAbsent((directory.stateRoot, batchId, generation), _ => new Entry)
  }

  override def held: Map[String, Long] = Map("manifests" -> cache.synchronized(cache.size.toLong))

  override def close(): Unit = cache.synchronized(cache.clear())

  /**
   * The manifest that a batch starts from.
   *
   * @param lineages
   *   lineages that the shards of the store must have according to the batch's lease
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CHECKPOINT_REPLACED if the file belongs to another history, and the errors of every reader of files
   */
  def startingFrom(directory: StateDirectory, batchId: Long, generation: Long)(
      store: StoreKey,
      lineages: Array[Long]
  ): Manifest = {
    // A lease has an entry for every shard of the layout, even if the operator has a single one.
    def hasLineages(m: Manifest) = !m.stores.contains(store) ||
      java.util.Arrays.equals(java.util.Arrays.copyOf(m.lineages(store), lineages.length), lineages)
    val e = entry(directory, batchId, generation)
    e.synchronized {
      if (e.manifest == null || !hasLineages(e.manifest)) read(e, directory, batchId, generation)
      if (!hasLineages(e.manifest)) {
        throw new PenstockException(
          "PENSTOCK_CHECKPOINT_REPLACED",
          s"${directory.name(Container.InManifest(batchId, generation).path)} is not the manifest that this run " +
            "started from: the checkpoint was deleted, restored, or written by another query while the query ran. No " +
            "state of this batch is kept. Stop the query, make sure that the checkpoint is the right one, and start " +
            "it again"
        )
      }
      e.manifest
    }
  }

  /** A manifest as its file is now; None if the file does not exist. */
  def current(directory: StateDirectory, batchId: Long, generation: Long): Option[Manifest] = {
    val e = entry(directory, batchId, generation)
    e.synchronized {
      directory.head(Container.InManifest(batchId, generation).path, IdentityBytes).map { identity =>
        if (e.manifest == null || !java.util.Arrays.equals(identity, e.identity)) {
          read(e, directory, batchId, generation)
          e.identity = identity
        }
        e.manifest
      }
    }
  }

  private def read(e: Entry, directory: StateDirectory, batchId: Long, generation: Long): Unit = {
    e.manifest = null
    e.identity = null
    e.manifest = directory.readManifest(batchId, generation)
  }
}
