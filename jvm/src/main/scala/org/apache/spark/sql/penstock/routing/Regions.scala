package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, HashPartitioning, Partitioning, PartitioningCollection}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec

/** How a region's tasks get their shards. */
sealed private[routing] trait Route

private[routing] object Route {

  /**
   * Bound at the barrier.
   *
   * @param exchanges
   *   that are read by the shards of a task
   * @param inTurn
   *   inputs of which a task takes its shards' partitions one after the other
   */
  final case class AtBarrier(exchanges: Seq[ShuffleExchangeExec], inTurn: Seq[InputByShard]) extends Route {

    /** Why there are such inputs, if there are. */
    def inTurnReason: Option[String] = Option.when(inTurn.nonEmpty)(inTurn.map(_.why).distinct.mkString("; "))
  }

  /** Partition p has shard p in it, and few tasks run all partitions in turn, because of `reason`. */
  final case class InTurn(reason: String) extends Route

  /** Task p runs shard p, because of `reason`. */
  final case class ByShard(reason: String) extends Route

  /** One task, which runs shard 0: the operator has no key. */
  case object Single extends Route
}

/**
 * What feeds a region with state but is no exchange of Spark's.
 *
 * @param node
 *   its top
 * @param exchanges
 *   those below it whose partitions go up to it, one by one
 * @param why
 *   a binding cannot change its partitions
 */
final private[routing] case class InputByShard(node: SparkPlan, exchanges: Seq[ShuffleExchangeExec], why: String)

/**
 * A part of a plan whose partitions are zipped by index, so that all of it must be routed alike: it ends, below, at
 * exchanges, at leaves and at nodes that are not known to keep partitions, and, above, at exchanges and other nodes that
 * take any number of partitions.
 *
 * @param nodes
 *   top down
 * @param inputs
 *   Spark's own exchanges that feed it, by hash or not
 * @param others
 *   what else feeds it
 * @param obstacles
 *   what is in it, and forbids to change its number of partitions
 */
final private[routing] class Region(
    val nodes: Seq[SparkPlan],
    val inputs: Seq[ShuffleExchangeExec],
    val others: Seq[InputByShard],
    val obstacles: Seq[String]
) {

  /** Operators with state, restoring and saving nodes of one operator alike. */
  val operators: Seq[StatefulOperator] = nodes.collect { case o: StatefulOperator if o.stateInfo.isDefined => o }

  def route: Route = {
    val shards = operators.head.getStateInfo.numPartitions
    val wrong = obstacles ++ inputs.flatMap(Region.obstacle(_, shards)) ++
      others.filterNot(o => Region.isByShard(o.node.outputPartitioning, shards)).map(_.why)
    if (operators.exists(_.requiredChildDistribution.contains(AllTuples))) Route.Single
    else if (wrong.nonEmpty) Route.InTurn(wrong.distinct.mkString("; "))
    else if (inputs.isEmpty && others.isEmpty) Route.InTurn("nothing feeds it")
    else Route.AtBarrier(
      inputs,
      others.map(o => o.copy(exchanges = o.exchanges.filter(Region.obstacle(_, shards).isEmpty)))
    )
  }
}

private[routing] object Region {
  private def obstacle(input: ShuffleExchangeExec, shards: Int): Option[String] = input.outputPartitioning match {
    case p if isByShard(p, shards) => None
    case h: HashPartitioning =>
      Some(s"${input.nodeName} has ${h.numPartitions} partitions by ${h.getClass.getSimpleName}, not $shards by hash")
    case p: Partitioning => Some(s"${input.nodeName} partitions by ${p.getClass.getSimpleName}, not by hash")
  }

  /** Whether partition p has shard p in it. */
  private def isByShard(partitioning: Partitioning, shards: Int): Boolean = partitioning match {
    case h: HashPartitioning => h.getClass == classOf[HashPartitioning] && h.numPartitions == shards
    case c: PartitioningCollection => c.partitionings.exists(isByShard(_, shards))
    case _ => false
  }
}

private[routing] object Regions {

  /** The regions of a plan that hold state. */
  def of(plan: SparkPlan): Seq[Region] = {
    val cut = new Cut
    cut.open(plan)
    cut.regions.toSeq.filter(_.operators.nonEmpty)
  }

  private class Building {
    val nodes = mutable.ArrayBuffer.empty[SparkPlan]
    val inputs = mutable.ArrayBuffer.empty[ShuffleExchangeExec]
    val others = mutable.ArrayBuffer.empty[InputByShard]
    val obstacles = mutable.ArrayBuffer.empty[String]

    def result: Region = new Region(nodes.toSeq, inputs.toSeq, others.toSeq, obstacles.toSeq)

    def add(part: Building): Unit = {
      nodes ++= part.nodes
      inputs ++= part.inputs
      others ++= part.others
      obstacles ++= part.obstacles
    }
  }

  private class Cut {
    val regions = mutable.ArrayBuffer.empty[Region]

    def open(plan: SparkPlan): Unit = {
      val building = new Building
      walk(plan, building, isAlone = true)
      regions += building.result
    }

    /**
     * @param isAlone
     *   whether the node's partitions are zipped with no others above it, and no state is above it
     */
    private def walk(node: SparkPlan, in: Building, isAlone: Boolean): Unit = node match {
      case e: BroadcastExchangeLike => e.children.foreach(open) // every task gets all of it
      case e: ShuffleExchangeExec =>
        in.inputs += e
        e.children.foreach(open)
      case e: ShuffleExchangeLike => end(e, s"${e.nodeName} is not Spark's own exchange", in)
      case n =>
        NodeKind.of(n) match {
          case Some(NodeKind.KeepsPartitions) => keep(n, in, isAlone)
          case Some(NodeKind.GathersPartitions) => end(n, s"${n.nodeName} makes other partitions of its input's", in)
          case Some(NodeKind.Refused(why)) => notKnown(n, s"${n.nodeName} $why", in, isAlone)
          // Above all state it need not be asked: it may be what writes the batch.
          case None if !isAlone && PartitionProbe.keepsPartitions(n) => keep(n, in, isAlone)
          case None =>
            notKnown(n, s"${n.nodeName} (${n.getClass.getName}) is not known to keep partitions", in, isAlone)
        }
    }

    private def keep(node: SparkPlan, in: Building, isAlone: Boolean): Unit = {
      in.nodes += node
      val goesOn = isAlone && zipped(node).size == 1 && !node.isInstanceOf[StatefulOperator]
      node.children.filter(_.isInstanceOf[BroadcastExchangeLike]).foreach(walk(_, in, isAlone = false))
      zipped(node).foreach(walk(_, in, goesOn))
    }

    /** A node that takes any number of partitions. */
    private def end(node: SparkPlan, why: String, in: Building): Unit = {
      in.others += InputByShard(node, Nil, why)
      node.children.foreach(open)
    }

    /** A node that may need to see each shard's partition by itself. */
    private def notKnown(node: SparkPlan, why: String, in: Building, isAlone: Boolean): Unit =
      // Whatever it does with partitions, nothing above depends on it; and it does not say that it needs so many.
      if (isAlone && zipped(node).size == 1 && node.requiredChildDistribution.forall(_.requiredNumPartitions.isEmpty))
        end(node, why, in)
      else {
        val below = new Building
        node.children.foreach(walk(_, below, isAlone = false))
        if (below.result.operators.isEmpty) in.others += InputByShard(node, below.inputs.toSeq, why)
        else {
          in.nodes += node
          in.add(below)
          in.obstacles += why
        }
      }
  }

  /**
   * Inputs that a node reads by partition. Initial state is read in the first batch only; later that child is an unrelated
   * leaf.
   */
  private def zipped(node: SparkPlan): Seq[SparkPlan] = node match {
    case f: FlatMapGroupsWithStateExec if !f.hasInitialState => Seq(f.child)
    case t: TransformWithStateExec if !t.hasInitialState => Seq(t.child)
    case t: TransformWithStateInPySparkExec if !t.hasInitialState => Seq(t.child)
    case n => n.children.filterNot(_.isInstanceOf[BroadcastExchangeLike])
  }
}
