package io.penstock.state.protocol

import io.penstock.state.protocol.ShardMemoryState._

/** Properties that must hold for the memory of executors in every state, docs/PROTOCOL.md, sections 7 and 13. */
object ShardMemoryProperties {

  /** The violated property, if there is one. */
  def violation(s: ShardMemoryState): Option[String] =
    s.tasks.iterator.flatMap(misread).nextOption()
      .orElse(s.executors.zipWithIndex.flatMap { case (e, i) => mislabelled(e, i) }.headOption)
      .orElse(s.manifests.flatMap { case (id, m) => misnamed(id, m) }.headOption)

  /** A task reads the content of its lease until it ends, and nothing from an earlier life of the checkpoint. */
  private def misread(t: Task): Option[String] = {
    val right = content(t.lease)
    t.held.flatMap(_.find(_.life != t.life)).map(c => s"$t reads $c, which is of another life")
      .orElse(t.held.filter(_.exists(_.batch == t.batch)).map(c => s"$t reads its own batch: ${show(c)}"))
      .orElse(t.held.filter(_ != right).map(c => s"$t reads ${show(c)}, not ${show(right)}"))
      .orElse(t.seen.filter(_ != right).map(c => s"$t has made its changes from ${show(c)}, not ${show(right)}"))
  }

  /** An executor's content matches its lineage, because the executor sends it to others. */
  private def mislabelled(e: Executor, i: Int): Option[String] =
    e.slot.filter(at => at.content != content(at.lineage)).map { at =>
      s"executor $i has ${show(at.content)} for ${show(at.lineage)}"
    }

  /** The content that a manifest names matches its lineage. */
  private def misnamed(id: (Int, Int), m: Manifest): Option[String] =
    Option.when(m.content != content(Some(m.lineage))) {
      s"manifest ${id._1}.${id._2} has ${show(m.content)} for ${m.lineage}"
    }
}
