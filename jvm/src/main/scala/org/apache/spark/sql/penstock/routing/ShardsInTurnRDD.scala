package org.apache.spark.sql.penstock.routing

import java.io.ObjectOutputStream

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.penstock.commit.TaskCommits
import org.apache.spark.sql.penstock.lease.TaskLeases
import org.apache.spark.{Dependency, NarrowDependency, Partition, TaskContext}

/**
 * Task t computes the partitions of the shards that are bound to it, in ascending order.
 *
 * @param tasks
 *   N
 * @param binds
 *   whether it gives the task its lease; else something below does, shard by shard
 */
final private class ShardsInTurnRDD(
    parent: RDD[InternalRow],
    @transient private val routing: RegionRouting,
    tasks: Int,
    binds: Boolean
) extends RDD[InternalRow](parent.context, Nil) {
  private val shipped = new ShippedBinding(routing)
  @transient private lazy val locations = routing.locations(None, RoutedShuffleRDD.executors(context))

  override protected def getDependencies: Seq[Dependency[_]] = Seq(new TurnDependency(parent, routing))

  override protected def getPartitions: Array[Partition] =
    Array.tabulate[Partition](tasks)(new TurnPartition(_, parent, routing))

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    if (ShippedBinding.onScheduler && routing.barrier.readyOrUncounted) locations(split.index) else Nil

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val binding = shipped.forTask(split.index)
    val left = mutable.Queue.from(split.asInstanceOf[TurnPartition].ofShards)
    def next() = firstParent[InternalRow].iterator(left.dequeue(), context)
    if (binds) TaskLeases.install(context, shipped.lease, binding.shardsOf(split.index))
    else {
      TaskCommits.together(context, left.size)
      // A task that has a partition runs it, and be it for its first row only, as a limit does. So it is with all of these.
      context.addTaskCompletionListener[Unit] { ended =>
        if (!ended.isFailed() && !ended.isInterrupted()) while (left.nonEmpty) next().hasNext: Unit
      }
    }
    Iterator.continually(()).takeWhile(_ => left.nonEmpty).flatMap(_ => next())
  }
}

/** Which partitions a task computes is known when the binding is: until then it may be all of them. */
final private class TurnDependency(parent: RDD[InternalRow], @transient private val routing: RegionRouting)
    extends NarrowDependency[InternalRow](parent) {
  override def getParents(task: Int): Seq[Int] =
    routing.barrier.decision.fold[Seq[Int]](parent.partitions.indices)(_.binding.shardsOf(task).toSeq)
}

/** A task, which is serialized when its stage has been, and so its binding been decided. */
final private class TurnPartition(
    override val index: Int,
    @transient private val parent: RDD[InternalRow],
    @transient private val routing: RegionRouting
) extends Partition {

  /** The partitions of the task's shards, in a task. */
  var ofShards: Array[Partition] = Array.empty

  private def writeObject(out: ObjectOutputStream): Unit = {
    if (routing != null) routing.barrier.decision.foreach { d =>
      ofShards = d.binding.shardsOf(index).map(parent.partitions(_))
    }
    out.defaultWriteObject()
  }
}
