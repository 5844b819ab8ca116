package org.apache.spark.sql.penstock.integration.soak

/**
 * A quantity that must not grow while a query runs.
 *
 * @param allowedGrowth
 *   Allowed growth, as a part of the level
 * @param allowedDifference
 *   Absolute difference that is allowed at any level
 */
final case class Flatness(name: String, allowedGrowth: Double, allowedDifference: Double) {

  /**
   * Describes the growth, if there is any. The first third of the samples is the query's start. The levels of the
   * second and of the last third are compared, each the median of its samples. A quantity that rises and falls, such as
   * the changes that wait for a snapshot, has levels that differ by where its periods are cut: a third of the range in
   * which it moves anyway is no growth. Steady growth differs by the whole range.
   *
   * @param samples
   *   Samples in order of time, at equal intervals; at least nine
   */
  def contradiction(samples: Seq[Double]): Option[String] = {
    require(samples.size >= 9, s"${samples.size} samples of $name are too few, at least 9 are needed")
    val third = samples.size / 3
    val before = median(samples.slice(third, 2 * third))
    val after = median(samples.drop(2 * third))
    val allowed = Seq(allowedDifference, before * allowedGrowth, range(samples.slice(third, 2 * third)) / 3).max
    Option.when(after - before > allowed) {
      f"$name grows: from $before%.0f to $after%.0f, in ${samples.size} samples; " +
        f"$allowed%.0f more is flat"
    }
  }

  /** Between the first and the last decile. */
  private def range(values: Seq[Double]): Double = {
    val sorted = values.sorted
    sorted(sorted.size - 1 - sorted.size / 10) - sorted(sorted.size / 10)
  }

  private def median(values: Seq[Double]): Double = {
    val sorted = values.sorted
    (sorted((sorted.size - 1) / 2) + sorted(sorted.size / 2)) / 2
  }
}
