package io.penstock.state.protocol

/**
 * How much may happen.
 *
 * @param runs
 *   of the query, in the order in which they start
 * @param retain
 *   batches that the query can be rewound to, `spark.sql.streaming.minBatchesToRetain`
 * @param alive
 *   drivers that live at the same time
 * @param snapshots
 *   whether executors write them, each run one at a time
 * @param rewinds
 *   whether the query may be rewound, once
 * @param slowCleaner
 *   whether other things happen between a cleaner's reading of manifests and its deleting
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
   *   the shards of each
   * @param retries
   *   attempts in a batch beside one per task, speculative ones included
   * @param parts
   *   the tasks of each action on a batch, where there is not one action that has them all
   * @param parallel
   *   whether the actions on a batch run at the same time, not one after the other
   * @param resubmits
   *   how often a stage of a batch may be submitted again
   * @param slow
   *   whether other things happen while a manifest is written, and between the answer to an attempt and its end
   */
  final case class Run(
      tasks: Vector[Vector[Int]],
      retries: Int = 0,
      parts: Vector[Set[Int]] = Vector.empty,
      parallel: Boolean = false,
      resubmits: Int = 0,
      slow: Boolean = false
  ) {

    /** The tasks of each action. */
    def actions: Vector[Set[Int]] = if (parts.isEmpty) Vector(tasks.indices.toSet) else parts
  }

  /** The oldest batch that the query can be rewound to. */
  def oldestRetained(bounds: Bounds, s: CommitState): Int =
    math.max(s.rewound.getOrElse(0), s.committed - bounds.retain + 1)
}
