package io.penstock.state.protocol

import scala.collection.mutable

/**
 * What a search found.
 *
 * @param states
 *   those that were visited
 * @param kinds
 *   names of the steps that led to them, without numbers
 * @param wrong
 *   the first state that is not as it should be
 */
final case class Search[S](states: collection.Set[S], kinds: Set[String], wrong: Option[Wrong])

/**
 * @param what
 *   is wrong
 * @param trace
 *   steps of a shortest way there
 */
final case class Wrong(what: String, trace: Seq[String])

object Search {

  /**
   * Visits every state that can be reached, breadth first, and stops at the first that is wrong.
   *
   * @param steps
   *   from a state: the name of each step that can be taken, and where it leads
   * @param violation
   *   what is wrong with a state, if anything is
   * @param limit
   *   number of states that are too many
   */
  def exhaustive[S](initial: S, limit: Int)(steps: S => Seq[(String, S)])(violation: S => Option[String]): Search[S] = {
    val from = mutable.HashMap(initial -> Option.empty[(S, String)])
    val kinds = mutable.HashSet[String]()
    val queue = mutable.Queue(initial)
    var wrong = Option.empty[Wrong]
    def trace(s: S): Seq[String] = Seq.unfold(s)(from(_).map { case (before, name) => (name, before) }).reverse
    while (wrong.isEmpty && queue.nonEmpty) {
      val s = queue.dequeue()
      wrong = violation(s).map(Wrong(_, trace(s)))
      if (wrong.isEmpty) steps(s).foreach { case (name, next) =>
        if (!from.contains(next)) {
          from(next) = Some((s, name))
          kinds += name.filterNot(_.isDigit)
          queue += next
        }
      }
      if (from.size > limit) throw new IllegalStateException(s"more than $limit states: tighten the bounds")
    }
    Search(from.keySet, kinds.toSet, wrong)
  }
}
