package io.penstock.routing

/** Arithmetic on the load of shards and tasks, shared by the binders and the report. */
object Load {

  /** Load of a row with typical cost. */
  private[penstock] val OfTypicalRow = 1000L

  /**
   * Expected cost of the rows of each shard, in thousandths of a typical row's cost.
   *
   * @param costs
   *   cost of a row of each shard relative to the typical row; None if all rows cost the same
   */
  def expected(rows: Array[Long], costs: Option[Array[Double]]): Array[Long] = costs match {
    case None => rows.map(_ * OfTypicalRow)
    case Some(c) => Array.tabulate(rows.length)(s => math.round(rows(s) * c(s) * OfTypicalRow))
  }

  /** Load of each task under a binding. */
  def ofTasks(rows: Array[Long], taskOf: Array[Int], tasks: Int): Array[Long] = {
    val load = new Array[Long](tasks)
    var s = 0
    while (s < rows.length) {
      load(taskOf(s)) += rows(s)
      s += 1
    }
    load
  }

  /** Load of the busiest task over the mean of all tasks, at least 1; 1 if there is no load. */
  def imbalance(load: Array[Long]): Double = {
    val total = load.sum
    if (total == 0) 1.0 else load.max.toDouble * load.length / total
  }

  /** Number of shards whose task differs from the previous binding; all shards if there is none. */
  def moved(previous: Option[Array[Int]], taskOf: Array[Int]): Int = previous match {
    case Some(p) if p.length == taskOf.length => taskOf.indices.count(s => p(s) != taskOf(s))
    case _ => taskOf.length
  }

  /** Shards by load, heaviest first; shards with equal load by id. */
  private[routing] def heaviestFirst(rows: Array[Long]): Array[Int] = {
    // A comparator does not box the operands of each comparison, as `sortBy` with a tuple does.
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
   * Longest processing time first (LPT): the heaviest remaining shard goes to the least loaded task. The largest load
   * is at most 4/3 of the optimum. Among tasks with equal load the one with the fewest shards is chosen, which spreads
   * shards without rows: they may have timers or expired state to process.
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
   * Contiguous ranges of shards with about equal load, one for each task; with about equal numbers of shards if there
   * is no load. A map task's blocks of adjacent shards are fetched as one block.
   */
  def neighbours(rows: Array[Long], tasks: Int): Array[Int] = {
    val total = rows.sum
    if (total == 0L) StaticBinder.bind(rows, tasks, None)
    else {
      var before = 0L
      rows.map { r =>
        // The task whose share of the total load contains the middle of the shard.
        val task = math.min(tasks - 1L, ((before + r / 2.0) * tasks / total).toLong).toInt
        before += r
        task
      }
    }
  }

  /** The same groups of shards, with tasks renumbered so that many shards stay on their previous task. */
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
