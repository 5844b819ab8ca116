package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, HashPartitioning, Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeLike,
  Exchange,
  ShuffleExchangeExec,
  ShuffleExchangeLike
}
import org.apache.spark.sql.execution.joins.CartesianProductExec
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator
import org.apache.spark.sql.execution.streaming.operators.stateful.flatmapgroupswithstate.FlatMapGroupsWithStateExec
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec
import org.apache.spark.sql.execution.{CoalesceExec, SparkPlan, UnionExec}

/** How a region's tasks get their shards. */
sealed private[routing] trait Route

private[routing] object Route {

  /** Through these exchanges, bound at the barrier. */
  final case class Late(exchanges: Seq[ShuffleExchangeExec]) extends Route

  /** Task p runs shard p, because of `reason`. */
  final case class ByShard(reason: String) extends Route

  /** One task, which runs shard 0: the operator has no key. */
  case object Single extends Route
}

/**
 * A part of a plan whose partitions are zipped by index, so that all of it must be routed alike: it ends, below, at
 * exchanges and leaves, and, above, at exchanges and at unions that concatenate.
 *
 * @param nodes
 *   top down
 * @param inputs
 *   exchanges that feed it, by hash or not
 * @param obstacles
 *   what else feeds it or is in it, and forbids to change its number of partitions
 */
final private[routing] class Region(
    val nodes: Seq[SparkPlan],
    val inputs: Seq[ShuffleExchangeLike],
    val obstacles: Seq[String]
) {

  /** Operators with state, restoring and saving nodes of one operator alike. */
  val operators: Seq[StatefulOperator] = nodes.collect { case o: StatefulOperator if o.stateInfo.isDefined => o }

  def route: Route = {
    val shards = operators.head.getStateInfo.numPartitions
    val wrong = obstacles ++ inputs.flatMap(Region.obstacle(_, shards))
    if (operators.exists(_.requiredChildDistribution.contains(AllTuples))) Route.Single
    else if (wrong.nonEmpty) Route.ByShard(wrong.distinct.mkString("; "))
    else if (inputs.isEmpty) Route.ByShard("no exchange feeds it")
    else Route.Late(inputs.map(_.asInstanceOf[ShuffleExchangeExec]))
  }
}

private[routing] object Region {
  private def obstacle(input: ShuffleExchangeLike, shards: Int): Option[String] = input match {
    case e: ShuffleExchangeExec =>
      e.outputPartitioning match {
        case h: HashPartitioning if h.getClass == classOf[HashPartitioning] && h.numPartitions == shards => None
        case h: HashPartitioning =>
          Some(s"${e.nodeName} has ${h.numPartitions} partitions by ${h.getClass.getSimpleName}, not $shards by hash")
        case p: Partitioning => Some(s"${e.nodeName} partitions by ${p.getClass.getSimpleName}, not by hash")
      }
    case other => Some(s"${other.nodeName} is not Spark's own exchange")
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
    val inputs = mutable.ArrayBuffer.empty[ShuffleExchangeLike]
    val obstacles = mutable.ArrayBuffer.empty[String]
  }

  private class Cut {
    val regions = mutable.ArrayBuffer.empty[Region]

    def open(plan: SparkPlan): Unit = {
      val building = new Building
      walk(plan, building)
      regions += new Region(building.nodes.toSeq, building.inputs.toSeq, building.obstacles.toSeq)
    }

    private def walk(node: SparkPlan, in: Building): Unit = node match {
      case e: BroadcastExchangeLike => e.children.foreach(open) // every task gets all of it
      case e: ShuffleExchangeLike =>
        in.inputs += e
        e.children.foreach(open)
      case e: Exchange =>
        in.obstacles += s"${e.nodeName} is an exchange of unknown kind"
        e.children.foreach(open)
      case u: UnionExec if u.outputPartitioning.isInstanceOf[UnknownPartitioning] =>
        in.obstacles += s"${u.nodeName} concatenates its inputs"
        u.children.foreach(open)
      case _: CoalesceExec | _: CartesianProductExec =>
        in.obstacles += s"${node.nodeName} changes the number of partitions"
        node.children.foreach(open)
      case n if n.children.isEmpty =>
        in.obstacles += s"${n.nodeName} feeds it without an exchange"
        in.nodes += n
      case n =>
        in.nodes += n
        if (!KnownNodes.contains(n))
          in.obstacles += s"${n.nodeName} (${n.getClass.getName}) is not known to keep partitions"
        zipped(n).foreach(walk(_, in))
    }
  }

  /** Inputs that a node reads. Initial state is read in the first batch only; later that child is an unrelated leaf. */
  private def zipped(node: SparkPlan): Seq[SparkPlan] = node match {
    case f: FlatMapGroupsWithStateExec if !f.hasInitialState => Seq(f.child)
    case t: TransformWithStateExec if !t.hasInitialState => Seq(t.child)
    case t: TransformWithStateInPySparkExec if !t.hasInitialState => Seq(t.child)
    case n => n.children
  }
}
