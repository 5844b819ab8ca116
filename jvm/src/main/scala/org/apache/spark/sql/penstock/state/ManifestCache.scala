package org.apache.spark.sql.penstock.state

import io.penstock.errors.PenstockException
import io.penstock.state.format.{Container, Manifest, StoreKey}

/**
 * The manifests that this JVM read last: all tasks of a batch on an executor start from the same one.
 *
 * A path, a batch and a generation do not name a manifest for good: a checkpoint may be deleted or restored while the
 * application runs, and its batches are counted anew. So what is here is used only where it is known to be what is asked
 * for, and is read again otherwise. Decision 071.
 */
object ManifestCache {
  private val Entries = 16
  private val IdentityBytes = 128

  /** Locked while it is read: one task reads, the others that want the same wait for it. */
  final private class Entry {
    var manifest: Manifest = _

    /** First bytes of its file: checksum of the body, run and time are among them. */
    var identity: Array[Byte] = _
  }

  private val cache =
    new java.util.LinkedHashMap[(String, Long, Long), Entry](Entries, 0.75f, true) {
      override def removeEldestEntry(e: java.util.Map.Entry[(String, Long, Long), Entry]): Boolean = size > Entries
    }

  private def entry(directory: StateDirectory, batchId: Long, generation: Long): Entry = cache.synchronized {
    cache.computeIfAbsent((directory.stateRoot, batchId, generation), _ => new Entry)
  }

  /**
   * The manifest that a batch starts from.
   *
   * @param lineages
   *   that the shards of a store must have, as the lease of the batch names them
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CHECKPOINT_REPLACED where the file is of another history; else as of every reader of files
   */
  def startingFrom(directory: StateDirectory, batchId: Long, generation: Long)(
      store: StoreKey,
      lineages: Array[Long]
  ): Manifest = {
    // A lease has room for all shards of the layout, also where the operator has a single one.
    def isRight(m: Manifest) = !m.stores.contains(store) ||
      java.util.Arrays.equals(java.util.Arrays.copyOf(m.lineages(store), lineages.length), lineages)
    val e = entry(directory, batchId, generation)
    e.synchronized {
      if (e.manifest == null || !isRight(e.manifest)) read(e, directory, batchId, generation)
      if (!isRight(e.manifest)) {
        throw new PenstockException(
          "PENSTOCK_CHECKPOINT_REPLACED",
          s"${directory.name(Container.InManifest(batchId, generation).path)} is not what this run has started from: the " +
            "checkpoint was deleted, restored or written by another query while the query ran. Nothing of this batch is " +
            "kept. Stop the query, see that the checkpoint is the right one, and start the query again"
        )
      }
      e.manifest
    }
  }

  /** A manifest as its file is now; None where there is no file. */
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
