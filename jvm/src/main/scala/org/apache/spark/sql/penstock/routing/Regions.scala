package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, HashPartitioning, Partitioning, PartitioningCollection}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec

/** How the shards of a region are assigned to tasks. */
sealed private[routing] trait Route {

  /** Why the region is not routed; None if it is routed. */
  def unroutedReason: Option[String]

  /** Why tasks read their input one shard after the other; None if they do not. */
  def inTurnReason: Option[String]
}

private[routing] object Route {

  /**
   * Shards are bound to tasks at the barrier.
   *
   * @param exchanges
   *   Exchanges of which a task reads the blocks of its shards
   * @param inTurn
   *   Inputs of which a task reads the partitions of its shards one after another
   */
  final case class AtBarrier(exchanges: Seq[ShuffleExchangeExec], inTurn: Seq[InputByShard]) extends Route {

    override def unroutedReason: Option[String] = None
    override def inTurnReason: Option[String] = Option.when(inTurn.nonEmpty)(inTurn.map(_.why).distinct.mkString("; "))
  }

  /** Partition p contains shard p, and each task runs several partitions in turn, because of `reason`. */
  final case class InTurn(reason: String) extends Route {
    override def unroutedReason: Option[String] = Some(reason)
    override def inTurnReason: Option[String] = Some(reason)
  }

  /** Task p runs shard p, because of `reason`. */
  final case class ByShard(reason: String) extends Route {
    override def unroutedReason: Option[String] = Some(reason)
    override def inTurnReason: Option[String] = None
  }

  /** One task runs shard 0, because the operator has no key. */
  case object Single extends Route {
    override def unroutedReason: Option[String] = Some("its operator takes one partition only")
    override def inTurnReason: Option[String] = None
  }
}

/**
 * An input of a stateful region that is not an exchange of Spark.
 *
 * @param node
 *   Root of the input
 * @param exchanges
 *   Exchanges below the node whose partitions it keeps
 * @param why
 *   Why a binding cannot change the node's partitions
 */
final private[routing] case class InputByShard(node: SparkPlan, exchanges: Seq[ShuffleExchangeExec], why: String)

/**
 * A part of a plan whose partitions are zipped by index, so that all of it must be routed in the same way. Its lower
 * ends are exchanges, leaves, and nodes that are not known to keep partitions. Its upper ends are exchanges and other
 * nodes that accept any number of partitions.
 *
 * @param nodes
 *   Nodes of the region, top down
 * @param inputs
 *   Spark's own exchanges below the region, whether they partition by hash or not
 * @param others
 *   Other inputs of the region
 * @param obstacles
 *   Reasons, from nodes of the region, why its number of partitions cannot change
 */
final private[routing] class Region(
    val nodes: Seq[SparkPlan],
    val inputs: Seq[ShuffleExchangeExec],
    val others: Seq[InputByShard],
    val obstacles: Seq[String]
) {

  /** Stateful operators. The restoring and the saving node of an operator are both included. */
  val operators: Seq[StatefulOperator] = nodes.collect { case o: StatefulOperator if o.stateInfo.isDefined => o }

  def route: Route = {
    val shards = operators.head.getStateInfo.numPartitions
    val reasons = obstacles ++ inputs.flatMap(Region.obstacle(_, shards)) ++
      others.filterNot(o => Region.isByShard(o.node.outputPartitioning, shards)).map(_.why)
    if (operators.exists(_.requiredChildDistribution.contains(AllTuples))) Route.Single
    else if (reasons.nonEmpty) Route.InTurn(reasons.distinct.mkString("; "))
    else if (inputs.isEmpty && others.isEmpty) Route.InTurn("it has no input")
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

  /** Whether partition p contains shard p. */
  private def isByShard(partitioning: Partitioning, shards: Int): Boolean = partitioning match {
    case h: HashPartitioning => h.getClass == classOf[HashPartitioning] && h.numPartitions == shards
    case c: PartitioningCollection => c.partitionings.exists(isByShard(_, shards))
    case _ => false
  }
}

private[routing] object Regions {

  /** The regions of a plan that have stateful operators. */
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
     *   Whether there is no stateful operator above the node, and no node above zips the node's partitions with others
     */
    private def walk(node: SparkPlan, in: Building, isAlone: Boolean): Unit = node match {
      case e: BroadcastExchangeLike => e.children.foreach(open) // every task reads the complete broadcast
      case e: ShuffleExchangeExec =>
        in.inputs += e
        e.children.foreach(open)
      case e: ShuffleExchangeLike => end(e, s"${e.nodeName} is not Spark's own exchange", in)
      case n =>
        NodeKind.of(n) match {
          case Some(NodeKind.KeepsPartitions) => keep(n, in, isAlone)
          case Some(NodeKind.GathersPartitions) => end(n, s"${n.nodeName} does not keep its input's partitions", in)
          case Some(NodeKind.Refused(why)) => notKnown(n, s"${n.nodeName} $why", in, isAlone)
          // Nodes above all stateful operators are not probed: such a node may be the one that writes the batch.
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

    /** Ends the region at a node that accepts any number of partitions. */
    private def end(node: SparkPlan, why: String, in: Building): Unit = {
      in.others += InputByShard(node, Nil, why)
      node.children.foreach(open)
    }

    /** Handles a node that may require one partition per shard. */
    private def notKnown(node: SparkPlan, why: String, in: Building, isAlone: Boolean): Unit =
      // Nothing above depends on the node's partitions, and the node does not require a certain number of them.
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
   * Inputs that a node reads by partition. Initial state is read in the first batch only; in later batches that child
   * is an unrelated leaf.
   */
  private def zipped(node: SparkPlan): Seq[SparkPlan] = node match {
    case f: FlatMapGroupsWithStateExec if !f.hasInitialState => Seq(f.child)
    case t: TransformWithStateExec if !t.hasInitialState => Seq(t.child)
    case t: TransformWithStateInPySparkExec if !t.hasInitialState => Seq(t.child)
    case n => n.children.filterNot(_.isInstanceOf[BroadcastExchangeLike])
  }
}
