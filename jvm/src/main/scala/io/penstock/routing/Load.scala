package io.penstock.routing

/** Arithmetic on the rows of shards and of tasks, shared by the binders and by the report. */
object Load {

  /** Load of a row that costs what the typical one does. */
  private[penstock] val OfTypicalRow = 1000L

  /**
   * What the rows of each shard will cost, in thousandths of a typical row's cost.
   *
   * @param costs
   *   of a row of each shard over the typical row's; None where all cost the same
   */
  def expected(rows: Array[Long], costs: Option[Array[Double]]): Array[Long] = costs match {
    case None => rows.map(_ * OfTypicalRow)
    case Some(c) => Array.tabulate(rows.length)(s => math.round(rows(s) * c(s) * OfTypicalRow))
  }

  /** Rows of every task under a binding. */
  def ofTasks(rows: Array[Long], taskOf: Array[Int], tasks: Int): Array[Long] = {
    val load = new Array[Long](tasks)
    var s = 0
    while (s < rows.length) {
      load(taskOf(s)) += rows(s)
      s += 1
    }
    load
  }

  /** Rows of the busiest task over the mean of all tasks, at least 1; 1 where there are no rows. */
  def imbalance(load: Array[Long]): Double = {
    val total = load.sum
    if (total == 0) 1.0 else load.max.toDouble * load.length / total
  }

  /** Shards whose task differs; all of them where there was no binding before. */
  def moved(previous: Option[Array[Int]], taskOf: Array[Int]): Int = previous match {
    case Some(p) if p.length == taskOf.length => taskOf.indices.count(s => p(s) != taskOf(s))
    case _ => taskOf.length
  }

  /** Shards by rows, heaviest first; equal ones by id. */
  private[routing] def heaviestFirst(rows: Array[Long]): Array[Int] = {
    // (rows descending, id ascending) without boxing each comparison's operands twice
    val ids: Array[Integer] = Array.tabulate(rows.length)(Integer.valueOf)
    java.util.Arrays.sort(
      ids,
      (a: Integer, b: Integer) => {
        val byRows = java.lang.Long.compare(rows(b), rows(a))
        if (byRows != 0) byRows else Integer.compare(a, b)
      }
    )
    ids.map(_.intValue)
  }

  /**
   * Longest processing time first: the heaviest shard left goes to the least loaded task. At most 4/3 of the best
   * possible maximum. Among equal tasks the one with fewest shards is taken, so shards without rows, which may have
   * timers or expiries due, are spread as well.
   */
  def longestFirst(rows: Array[Long], tasks: Int): Array[Int] = {
    val taskOf = new Array[Int](rows.length)
    val load = new Array[Long](tasks)
    val count = new Array[Int](tasks)
    heaviestFirst(rows).foreach { s =>
      var best = 0
      var t = 1
      while (t < tasks) {
        if (load(t) < load(best) || (load(t) == load(best) && count(t) < count(best))) best = t
        t += 1
      }
      taskOf(s) = best
      load(best) += rows(s)
      count(best) += 1
    }
    taskOf
  }

  /**
   * Runs of neighbours with about equal rows, one for each task; with about equal numbers of shards where there are no
   * rows. A map task's blocks of neighbouring shards are fetched as one.
   */
  def neighbours(rows: Array[Long], tasks: Int): Array[Int] = {
    val total = rows.sum
    if (total == 0L) StaticBinder.bind(rows, tasks, None)
    else {
      var before = 0L
      rows.map { r =>
        // The task in whose share of the whole the middle of the shard lies.
        val task = math.min(tasks - 1L, ((before + r / 2.0) * tasks / total).toLong).toInt
        before += r
        task
      }
    }
  }

  /** The same groups of shards, with the tasks renumbered so that many shards stay with their previous task. */
  private[routing] def renumber(taskOf: Array[Int], tasks: Int, previous: Array[Int]): Array[Int] = {
    val common = Array.ofDim[Int](tasks, tasks)
    taskOf.indices.foreach(s => if (previous(s) < tasks) common(taskOf(s))(previous(s)) += 1)
    val pairs = for (a <- 0 until tasks; b <- 0 until tasks if common(a)(b) > 0) yield (common(a)(b), a, b)
    val newOf = Array.fill(tasks)(-1)
    val taken = new Array[Boolean](tasks)
    pairs.sortBy { case (n, a, b) => (-n, a, b) }.foreach { case (_, a, b) =>
      if (newOf(a) < 0 && !taken(b)) {
        newOf(a) = b
        taken(b) = true
      }
    }
    val free = (0 until tasks).filterNot(taken(_)).iterator
    newOf.indices.foreach(a => if (newOf(a) < 0) newOf(a) = free.next())
    taskOf.map(newOf(_))
  }
}
