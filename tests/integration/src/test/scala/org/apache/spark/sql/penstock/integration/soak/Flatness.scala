package org.apache.spark.sql.penstock.integration.soak

/**
 * A quantity that must not grow while a query runs.
 *
 * @param allowedGrowth
 *   of the level, as a part of it
 * @param allowedDifference
 *   that is no growth, however small the level
 */
final case class Flatness(name: String, allowedGrowth: Double, allowedDifference: Double) {

  /**
   * What contradicts, if anything does. The first third is the query's start; the levels of the second and of the last one
   * are compared, each the median of its samples.
   *
   * @param samples
   *   in the order of time, at equal distances; at least nine
   */
  def contradiction(samples: Seq[Double]): Option[String] = {
    require(samples.size >= 9, s"${samples.size} samples of $name say nothing")
    val third = samples.size / 3
    val before = median(samples.slice(third, 2 * third))
    val after = median(samples.drop(2 * third))
    Option.when(after - before > math.max(allowedDifference, before * allowedGrowth)) {
      f"$name grows: from $before%.0f to $after%.0f, in ${samples.size} samples; at most ${allowedGrowth * 100}%.0f %% or " +
        f"$allowedDifference%.0f is flat"
    }
  }

  private def median(of: Seq[Double]): Double = {
    val sorted = of.sorted
    (sorted((sorted.size - 1) / 2) + sorted(sorted.size / 2)) / 2
  }
}
