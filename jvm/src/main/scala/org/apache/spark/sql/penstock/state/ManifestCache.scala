package org.apache.spark.sql.penstock.state

import io.penstock.state.format.Manifest

/** The manifests that this JVM read last: all tasks of a batch on an executor start from the same one. */
object ManifestCache {
  private val Entries = 16

  private val cache =
    new java.util.LinkedHashMap[(String, Long, Long), Manifest](Entries, 0.75f, true) {
      override def removeEldestEntry(e: java.util.Map.Entry[(String, Long, Long), Manifest]): Boolean = size > Entries
    }

  /** One task reads, the others wait for it. */
  def get(directory: StateDirectory, batchId: Long, generation: Long): Manifest = synchronized {
    val key = (directory.stateRoot, batchId, generation)
    val known = cache.get(key)
    if (known != null) known
    else {
      val m = directory.readManifest(batchId, generation)
      cache.put(key, m)
      m
    }
  }
}
