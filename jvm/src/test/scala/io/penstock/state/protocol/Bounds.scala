package io.penstock.state.protocol

/**
 * Bounds of the histories that a search explores.
 *
 * @param runs
 *   Runs of the query, in the order in which they start
 * @param retain
 *   Number of batches that the query can be rewound to, `spark.sql.streaming.minBatchesToRetain`
 * @param alive
 *   Number of drivers that can be alive at the same time
 * @param snapshots
 *   Whether executors write snapshots, one at a time for each run
 * @param rewinds
 *   Whether the query may be rewound, at most once
 * @param slowCleaner
 *   Whether other steps can happen between a cleaner's reading of manifests and its deletions
 */
final case class Bounds(
    batches: Int,
    runs: Vector[Bounds.Run],
    retain: Int,
    alive: Int = 1,
    snapshots: Boolean = false,
    rewinds: Boolean = false,
    slowCleaner: Boolean = false
) {
  def shards: Int = runs.head.tasks.flatten.size
}

object Bounds {

  /**
   * @param tasks
   *   Shards of each task
   * @param retries
   *   Number of attempts in a batch in addition to one per task, including speculative ones
   * @param parts
   *   Tasks of each action on a batch; empty if a single action has all tasks
   * @param parallel
   *   Whether the actions on a batch run at the same time instead of one after the other
   * @param resubmits
   *   How often a stage of a batch may be submitted again
   * @param slow
   *   Whether other steps can happen while a manifest is written, and between the answer to an attempt and its end
   */
  final case class Run(
      tasks: Vector[Vector[Int]],
      retries: Int = 0,
      parts: Vector[Set[Int]] = Vector.empty,
      parallel: Boolean = false,
      resubmits: Int = 0,
      slow: Boolean = false
  ) {

    /** The tasks of each action on a batch. */
    def actions: Vector[Set[Int]] = if (parts.isEmpty) Vector(tasks.indices.toSet) else parts
  }

  /** The oldest batch that the query can be rewound to. */
  def oldestRetained(bounds: Bounds, s: CommitState): Int =
    math.max(s.rewound.getOrElse(0), s.committed - bounds.retain + 1)
}
