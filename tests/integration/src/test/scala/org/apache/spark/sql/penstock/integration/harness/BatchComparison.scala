package org.apache.spark.sql.penstock.integration.harness

/** Compares the answers of two runs, batch by batch. */
object BatchComparison {

  /** The difference, or None. Batches without rows are ignored, because engines may need different numbers of them. */
  def difference(reference: RunResult, subject: RunResult, equivalence: Equivalence): Option[String] = {
    val expected = withRows(reference)
    val found = withRows(subject)
    if (expected.isEmpty) Some("the reference gave no rows, so nothing was compared")
    else (expected.keySet ++ found.keySet).toSeq.sorted.flatMap { batch =>
      val once = expected.getOrElse(batch, Seq(Nil)).head
      found.getOrElse(batch, Seq(Nil)).zipWithIndex.flatMap { case (rows, delivery) =>
        ofRows(once, rows, equivalence).map(text => s"batch $batch, delivery $delivery: $text")
      }
    }.headOption
  }

  private def withRows(result: RunResult) = result.batches.filter(_._2.exists(_.nonEmpty))

  private def ofRows(expected: Seq[String], found: Seq[String], equivalence: Equivalence): Option[String] = {
    val same = equivalence match {
      case Equivalence.SameRows => expected.sorted == found.sorted
      case Equivalence.SameOrder => expected == found
      case Equivalence.SameCounts => expected.size == found.size
    }
    Option.unless(same) {
      s"${expected.size} rows expected, ${found.size} found; " +
        s"missing ${sample(expected.diff(found))}; too many ${sample(found.diff(expected))}"
    }
  }

  private def sample(rows: Seq[String]) =
    rows.sorted.take(5).mkString(s"${rows.size}: ", " ", if (rows.size > 5) " ..." else "")
}
