package io.penstock.conf

/** What Penstock does for a query. */
sealed abstract class Mode(val name: String) {
  override def toString: String = name
}

object Mode {

  /** Nothing is routed: a task runs one shard, as in plain Spark. State stays readable. */
  case object Off extends Mode("off")

  /** Bindings are computed and reported, but tasks run as under `Off`. */
  case object Observe extends Mode("observe")

  /** Shards are bound to tasks in every batch. */
  case object On extends Mode("on")

  val kind: Kind[Mode] = Kind.choice("mode", Seq(Off, Observe, On).map(m => m.name -> (m: Mode)))(_.name)
}

/** What chooses the task of each shard. */
sealed abstract class PolicyChoice(override val toString: String)

object PolicyChoice {

  /** At the barrier, by the batch's own rows; previous owners stay but for the moves that balance needs. */
  case object Hybrid extends PolicyChoice("hybrid")

  /** By shard id: the same binding whatever the load. */
  case object Static extends PolicyChoice("static")

  /** By a paper's algorithm, which the driver's planner runs on what the batch before has shown. */
  final case class Planned(name: String) extends PolicyChoice(name)

  /** Elasticutor's and what it is compared with, and Fang et al.'s. */
  val planned: Seq[Planned] = Seq("refine", "resourceCentric", "mixed", "minTable", "minMig").map(Planned)

  /** At random, for tests. */
  final case class Chaos(seed: Long) extends PolicyChoice(s"chaos($seed)")

  val kind: Kind[PolicyChoice] = Kind.choice[PolicyChoice](
    "policy",
    (Hybrid +: Static +: planned).map(p => p.toString -> p),
    Seq("chaos" -> (s => Chaos(s)))
  )(_.toString)
}

/**
 * Which policy chooses the number of tasks of a batch.
 *
 * @param followsCores
 *   whether it has another number with other cores
 */
sealed abstract class TasksChoice(override val toString: String, val followsCores: Boolean = false)

object TasksChoice {

  /** As many as the application has cores, at most one per shard. */
  case object Cores extends TasksChoice("cores", followsCores = true)

  /** As many as the driver's planner finds best. */
  case object Auto extends TasksChoice("auto", followsCores = true)

  /** So many, at most one per shard. */
  final case class Fixed(count: Int) extends TasksChoice(count.toString)

  /** Another number in every batch, at random, for tests. */
  final case class Chaos(seed: Long) extends TasksChoice(s"chaos($seed)")

  val kind: Kind[TasksChoice] = Kind.choice[TasksChoice](
    "tasks",
    Seq("cores" -> Cores, "auto" -> Auto),
    Seq("chaos" -> (s => Chaos(s))),
    Some(Kind.int(1, 65536) -> (n => Fixed(n)))
  )(_.toString)
}

/** How much of a JVM's heap something may take. */
sealed abstract class HeapLimit(override val toString: String) {

  /** The limit in bytes, in a heap of at most `maxHeapBytes`. */
  def bytes(maxHeapBytes: Long): Long
}

object HeapLimit {

  /** So many bytes in every JVM. */
  final case class Size(sizeBytes: Long) extends HeapLimit(ByteSize.write(sizeBytes)) {
    override def bytes(maxHeapBytes: Long): Long = sizeBytes
  }

  /** So many hundredths of the JVM's largest heap. */
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
