package io.penstock.conf

import io.penstock.routing.{ShardPolicy, TasksChoice}
import io.penstock.transport.{Transport, Transports}

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

/** Kinds of the settings that select a policy. */
private[conf] object Policies {
  val shards: Kind[ShardPolicy] =
    Kind.choice[ShardPolicy]("policy", ShardPolicy.named.map(p => p.toString -> p), ShardPolicy.seeded)(_.toString)

  val tasks: Kind[TasksChoice] = Kind.choice[TasksChoice](
    "tasks",
    TasksChoice.named.map(c => c.toString -> c),
    TasksChoice.seeded,
    Some(Kind.int(1, 65536) -> (n => TasksChoice.Fixed(n)))
  )(_.toString)
}

/** Values of the setting that selects a transport, and the words of its documentation. */
private[conf] object TransportWords {
  import Transports.{All, Auto, Off}

  val kind: Kind[String] =
    Kind.choice("transport", (Seq(Off, Auto) ++ All.map(_.name)).map(word => word -> word))(identity)

  /** The transports that `auto` chooses from, with their means. */
  val automatic: String = listed(All.filterNot(_.onlyByName))(t => s"`${t.name}` (${t.means})")

  /** The transports that are used only if they are set by name. */
  val byName: String = listed(All.filter(_.onlyByName))(t => s"`${t.name}`")

  /** The transports that can encrypt. */
  val encrypting: String = listed(All.filter(_.encrypts))(t => s"`${t.name}`")

  private def listed(transports: Seq[Transport])(word: Transport => String): String = {
    val words = transports.map(word)
    (words.dropRight(2) :+ words.takeRight(2).mkString(" and ")).mkString(", ")
  }
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
