package io.penstock.conf

/** What Penstock does for a query. */
sealed abstract class Mode(val name: String) {
  override def toString: String = name
}

object Mode {

  /** Each task runs one shard, as in plain Spark. State in Penstock's store stays readable. */
  case object Off extends Mode("off")

  /** Bindings are computed and reported, but tasks run as under `Off`. */
  case object Observe extends Mode("observe")

  /** Shards are bound to tasks in every batch. */
  case object On extends Mode("on")

  val kind: Kind[Mode] = Kind.choice("mode", Seq(Off, Observe, On).map(m => m.name -> (m: Mode)))(_.name)
}

/** Policy that chooses the task of each shard. */
sealed abstract class PolicyChoice(override val toString: String)

object PolicyChoice {

  /** Decides at the barrier, from the rows of the batch, and moves only the shards that balance requires. */
  case object Hybrid extends PolicyChoice("hybrid")

  /** Assigns tasks by shard id, whatever the load is. */
  case object Static extends PolicyChoice("static")

  /** A published algorithm, which the planner sidecar runs on the measurements of the previous batch. */
  final case class Planned(name: String) extends PolicyChoice(name)

  /** `refine` is Elasticutor's algorithm, `resourceCentric` its baseline; the others are from Fang et al. */
  val planned: Seq[Planned] = Seq("refine", "resourceCentric", "mixed", "minTable", "minMig").map(Planned)

  /** Assigns tasks at random, for tests. */
  final case class Chaos(seed: Long) extends PolicyChoice(s"chaos($seed)")

  val kind: Kind[PolicyChoice] = Kind.choice[PolicyChoice](
    "policy",
    (Hybrid +: Static +: planned).map(p => p.toString -> p),
    Seq("chaos" -> (s => Chaos(s)))
  )(_.toString)
}

/**
 * Policy that chooses the number of tasks of a batch.
 *
 * @param followsCores
 *   whether the number of tasks changes with the number of cores
 */
sealed abstract class TasksChoice(override val toString: String, val followsCores: Boolean = false)

object TasksChoice {

  /** One task per core of the application, at most one per shard. */
  case object Cores extends TasksChoice("cores", followsCores = true)

  /** The number of tasks that the planner sidecar finds best. */
  case object Auto extends TasksChoice("auto", followsCores = true)

  /** A fixed number of tasks, at most one per shard. */
  final case class Fixed(count: Int) extends TasksChoice(count.toString)

  /** A random number of tasks in every batch, for tests. */
  final case class Chaos(seed: Long) extends TasksChoice(s"chaos($seed)")

  val kind: Kind[TasksChoice] = Kind.choice[TasksChoice](
    "tasks",
    Seq("cores" -> Cores, "auto" -> Auto),
    Seq("chaos" -> (s => Chaos(s))),
    Some(Kind.int(1, 65536) -> (n => Fixed(n)))
  )(_.toString)
}

/** Upper bound for a part of a JVM's heap. */
sealed abstract class HeapLimit(override val toString: String) {

  /** The limit in bytes, in a heap of at most `maxHeapBytes`. */
  def bytes(maxHeapBytes: Long): Long
}

object HeapLimit {

  /** The same number of bytes in every JVM. */
  final case class Size(sizeBytes: Long) extends HeapLimit(ByteSize.write(sizeBytes)) {
    override def bytes(maxHeapBytes: Long): Long = sizeBytes
  }

  /** A percentage of the JVM's maximum heap. */
  final case class Share(percent: Int) extends HeapLimit(s"$percent%") {
    override def bytes(maxHeapBytes: Long): Long = maxHeapBytes / 100 * percent
  }

  val kind: Kind[HeapLimit] = Kind(
    "size",
    s"a size such as 512m or 4g (${ByteSize.UnitsInWords}), or a share of the heap from 1% to 100%",
    text =>
      if (text.endsWith("%")) text.dropRight(1).toIntOption.filter(p => p >= 1 && p <= 100).map(Share(_))
      else ByteSize.read(text).filter(_ > 0L).map(Size(_)),
    _.toString
  )
}
