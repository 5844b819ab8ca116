package org.apache.spark.sql.penstock.integration.chaos

/** Reduces a failing scenario by leaving out everything that is not needed for the failure. */
object Shrinker {

  /**
   * The smallest failing scenario found.
   *
   * @param fails
   *   Plays a scenario and returns whether it fails
   * @param attempts
   *   Largest number of scenarios to play
   */
  def shrink(scenario: Scenario, attempts: Int)(fails: Scenario => Boolean): Scenario = {
    var left = attempts
    var smallest = scenario
    var changed = true
    while (changed && left > 0) {
      changed = false
      val candidates = smaller(smallest).iterator
      while (candidates.hasNext && !changed && left > 0) {
        val candidate = candidates.next()
        left -= 1
        if (fails(candidate)) {
          smallest = candidate
          changed = true
        }
      }
    }
    smallest
  }

  /** Scenarios with one event less, faults first, and with fewer rows. */
  def smaller(s: Scenario): Seq[Scenario] = {
    def without(events: Seq[String]) = events.indices.map(i => events.patch(i, Nil, 1))
    val fewer = s.steps.indices.flatMap { i =>
      s.steps(i).split(' ') match {
        case Array("feed", number, left, right) if left.toInt > 5 =>
          Some(s.copy(steps =
            s.steps.updated(i, s"feed $number ${left.toInt / 4} ${math.min(right.toInt, left.toInt / 4)}")
          ))
        case _ => None
      }
    }
    without(s.faults).map(f => s.copy(faults = f)) ++
      without(s.steps).filter(_.exists(_.startsWith("feed"))).map(steps => s.copy(steps = steps)) ++
      Option.when(s.policy.nonEmpty)(s.copy(policy = "static")).filter(_ != s) ++
      Option.when(s.otherSettings)(s.copy(otherSettings = false)) ++
      Option.when(s.speculation)(s.copy(speculation = false)) ++
      Option.when(s.actions > 1)(s.copy(actions = s.actions - 1)) ++
      Option.when(s.cluster)(s.copy(cluster = false)) ++ Option.when(s.twice)(s.copy(twice = false)) ++ fewer
  }
}
