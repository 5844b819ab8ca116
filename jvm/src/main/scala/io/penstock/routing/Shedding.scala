package io.penstock.routing

import scala.collection.mutable

/**
 * One attempt of the sticky binder: it starts with the previous binding and moves single shards.
 *
 * @param rows
 *   load of each shard
 * @param owners
 *   previous task of each shard; shards of a task that no longer exists have no owner
 * @param limit
 *   load that no task may exceed
 */
final private[routing] class Shedding(rows: Array[Long], tasks: Int, owners: Array[Int], limit: Double) {
  private val byRows = Load.heaviestFirst(rows)
  private val load = new Array[Long](tasks)
  private val count = new Array[Int](tasks)

  /** Hot shards that were sent to a task without room. They are not moved again, so that the algorithm terminates. */
  private val settled = new Array[Boolean](rows.length)

  val taskOf: Array[Int] = owners.clone()

  /** Moves shards until no task exceeds the limit. Returns whether this was possible; `taskOf` is the binding then. */
  def run(busiestFirst: Boolean): Boolean = {
    adopt()
    var steps = 4 * rows.length
    var stuck = false
    var over = overloaded(busiestFirst)
    while (over >= 0 && !stuck) {
      steps -= 1
      stuck = steps < 0 || !(eject(over) || giveEnough(over) || exchange(over, enough = true) || give(over) ||
        exchange(over, enough = false))
      over = overloaded(busiestFirst)
    }
    if (!stuck) {
      takeHome()
      spreadCounts()
    }
    !stuck
  }

  /** Assigns each shard to its owner, and shards without an owner to the least loaded tasks, heaviest first. */
  private def adopt(): Unit = {
    val (kept, loose) = byRows.partition(s => owners(s) >= 0 && owners(s) < tasks)
    kept.foreach { s =>
      load(owners(s)) += rows(s)
      count(owners(s)) += 1
    }
    loose.foreach { s =>
      taskOf(s) = (0 until tasks).minBy(t => (load(t), count(t), t))
      load(taskOf(s)) += rows(s)
      count(taskOf(s)) += 1
    }
  }

  private def move(shard: Int, to: Int): Unit = {
    val from = taskOf(shard)
    load(from) -= rows(shard)
    count(from) -= 1
    load(to) += rows(shard)
    count(to) += 1
    taskOf(shard) = to
  }

  private def room(task: Int): Double = limit - load(task)

  /** The busiest or the least busy of the tasks above the limit; -1 if there is none. */
  private def overloaded(busiestFirst: Boolean): Int = {
    var found = -1
    var t = 0
    while (t < tasks) {
      if (load(t) > limit && (found < 0 || (if (busiestFirst) load(t) > load(found) else load(t) < load(found))))
        found = t
      t += 1
    }
    found
  }

  /** Shards of a task that may be moved, heaviest first. */
  private def movable(task: Int): Array[Int] = byRows.filter(s => taskOf(s) == task && rows(s) > 0 && !settled(s))

  private def widestRoom(but: Int): Double = {
    var widest = 0.0
    var t = 0
    while (t < tasks) {
      if (t != but) widest = math.max(widest, room(t))
      t += 1
    }
    widest
  }

  /** Number of `shards`, heaviest first, to move to reduce the load by `excess`, if each must fit into `widest`. */
  private def cost(shards: Array[Int], excess: Double, widest: Double, but: Int): Int = {
    var left = excess
    var n = 0
    var i = 0
    while (left > 0 && i < shards.length) {
      if (shards(i) != but && rows(shards(i)) <= widest) {
        left -= rows(shards(i))
        n += 1
      }
      i += 1
    }
    if (left > 0) Shedding.Never else n
  }

  /** Moves a hot shard, which fits nowhere, to a task that has to shed fewer shards for it than its current task. */
  private def eject(from: Int): Boolean = {
    val mine = movable(from)
    val widest = widestRoom(from)
    val excess = load(from) - limit
    var fewest = cost(mine, excess, widest, -1)
    var hot = -1
    var target = -1
    val candidates = mine.takeWhile(rows(_) > widest).take(Shedding.HotShards)
    if (candidates.nonEmpty && fewest > 1) {
      val theirs = Array.tabulate(tasks)(t => if (t == from) Array.emptyIntArray else movable(t))
      candidates.foreach { s =>
        val rest = cost(mine, excess - rows(s), widest, s)
        (0 until tasks).filter(t => t != from && rest < Shedding.Never).foreach { t =>
          val all = 1 + rest + cost(theirs(t), load(t) + rows(s) - limit, widest, -1)
          if (all < fewest) {
            fewest = all
            hot = s
            target = t
          }
        }
      }
    }
    if (hot >= 0) {
      settled(hot) = true
      move(hot, target)
    }
    hot >= 0
  }

  /** Shards of a task that fit on another task, heaviest first. */
  private def fitting(from: Int): Array[Int] = {
    val widest = widestRoom(from)
    movable(from).filter(rows(_) <= widest)
  }

  /** Moves the lightest shard whose move alone brings the task within the limit; false if there is none. */
  private def giveEnough(from: Int): Boolean =
    fitting(from).findLast(rows(_) >= load(from) - limit).exists(giveAway(from, _))

  /** Moves the heaviest shard that fits on another task; false if there is none. */
  private def give(from: Int): Boolean = fitting(from).headOption.exists(giveAway(from, _))

  private def giveAway(from: Int, shard: Int): Boolean = {
    val receivers = (0 until tasks).filter(t => t != from && room(t) >= rows(shard))
    val owner = owners(shard)
    // The fullest task with enough room is chosen, so that wide rooms stay free for heavy shards.
    move(shard, if (receivers.contains(owner)) owner else receivers.minBy(t => (room(t), t)))
    true
  }

  /**
   * Exchanges a shard for a lighter one of another task that stays within the limit. Even if no shard fits into any
   * room, there may be pairs of shards that differ by little.
   *
   * @param enough
   *   if true, the smallest exchange that brings `from` within the limit; if false, the exchange that relieves it most
   */
  private def exchange(from: Int, enough: Boolean): Boolean = {
    val excess = load(from) - limit
    val mine = movable(from)
    val theirs = Array.fill(tasks)(mutable.ArrayBuilder.make[Int])
    byRows.foreach(s => if (taskOf(s) != from && !settled(s)) theirs(taskOf(s)) += s)
    var (give, take) = (-1, -1)
    var best = if (enough) Double.MaxValue else 0.0
    theirs.indices.foreach { t =>
      val others = theirs(t).result()
      val most = room(t)
      if (others.nonEmpty && most > (if (enough) excess else 0.0)) mine.foreach { s =>
        // The heaviest shard that still relieves `from` by `excess`, or the lightest shard that the other task has room
        // for.
        val at =
          if (enough) Shedding.firstAtMost(rows, others, rows(s) - excess)
          else Shedding.firstAtMost(rows, others, math.ceil(rows(s) - most) - 0.5) - 1
        if (at >= 0 && at < others.length) {
          val relief = (rows(s) - rows(others(at))).toDouble
          val better = if (enough) relief < best else relief > best
          if (relief > 0 && relief <= most && better) {
            best = relief
            give = s
            take = others(at)
          }
        }
      }
    }
    if (give >= 0) {
      val to = taskOf(take)
      move(give, to)
      move(take, from)
    }
    give >= 0
  }

  /**
   * Returns shards to their owner if they fit there after later moves; lightest first, so that as many as possible
   * return.
   */
  private def takeHome(): Unit = byRows.reverseIterator.foreach { s =>
    val owner = owners(s)
    if (owner >= 0 && owner < tasks && owner != taskOf(s) && room(owner) >= rows(s)) move(s, owner)
  }

  /**
   * Limits each task to twice its share of the shards, because shards without rows may have timers or expired state to
   * process. The lightest shards move to the tasks with the fewest shards.
   */
  private def spreadCounts(): Unit = {
    val most = Shedding.maxShards(rows.length, tasks)
    (0 until tasks).filter(count(_) > most).foreach { t =>
      val light = mutable.Queue.from(byRows.reverseIterator.filter(taskOf(_) == t))
      while (count(t) > most && light.nonEmpty) {
        val s = light.dequeue()
        val receivers = (0 until tasks).filter(o => count(o) < most && room(o) >= rows(s))
        if (receivers.nonEmpty) move(s, receivers.minBy(o => (count(o), load(o), o)))
      }
    }
  }
}

private object Shedding {

  /** Stands for "not possible": larger than any number of moves. */
  val Never = 1 << 24

  /** Index of the first of `shards`, heaviest first, whose load is at most `most`. */
  private def firstAtMost(rows: Array[Long], shards: Array[Int], most: Double): Int = {
    var (low, high) = (0, shards.length)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (rows(shards(middle)) > most) low = middle + 1 else high = middle
    }
    low
  }

  /** Largest number of shards of a task: twice its share. */
  def maxShards(shards: Int, tasks: Int): Int = 2 * ((shards + tasks - 1) / tasks)

  /** Number of a task's heaviest shards that are considered as hot shards. */
  val HotShards = 4
}
