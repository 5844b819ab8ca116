package io.penstock.state.protocol

import scala.collection.mutable

/**
 * Result of a search.
 *
 * @param states
 *   States that were visited
 * @param kinds
 *   Names of the steps that led to them, without digits
 * @param wrong
 *   First state that violates a property
 */
final case class Search[S](states: collection.Set[S], kinds: Set[String], wrong: Option[Wrong])

/**
 * A state that violates a property.
 *
 * @param violation
 *   The violated property
 * @param trace
 *   Steps of a shortest path to the state
 */
final case class Wrong(violation: String, trace: Seq[String])

object Search {

  /**
   * Visits every reachable state, breadth first, and stops at the first violation.
   *
   * @param steps
   *   Function from a state to its possible steps: the name of each step and the state that it leads to
   * @param violation
   *   Function from a state to the property that it violates, if there is one
   * @param limit
   *   Number of states above which the search fails
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
