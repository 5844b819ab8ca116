package org.apache.spark.sql.penstock.routing

import java.io.ObjectOutputStream

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.penstock.commit.TaskCommits
import org.apache.spark.sql.penstock.executors.LiveExecutors
import org.apache.spark.sql.penstock.lease.TaskLeases
import org.apache.spark.{Dependency, NarrowDependency, Partition, TaskContext}

/**
 * Each task computes the partitions of the shards that are bound to it, one after another in ascending order.
 *
 * @param tasks
 *   Number of tasks
 * @param binds
 *   Whether this RDD installs the lease for all shards of the task. Otherwise nodes below install it for each shard
 */
final private class ShardsInTurnRDD(
    parent: RDD[InternalRow],
    @transient private val routing: RegionRouting,
    tasks: Int,
    binds: Boolean
) extends RDD[InternalRow](parent.context, Nil) {
  private val shipped = new ShippedBinding(routing)
  @transient private lazy val locations =
    routing.locations(None, LiveExecutors.count(context), LiveExecutors.getsTasks(context))

  override protected def getDependencies: Seq[Dependency[_]] = Seq(new TurnDependency(parent, routing))

  override protected def getPartitions: Array[Partition] =
    Array.tabulate[Partition](tasks)(new TurnPartition(_, parent, routing))

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    if (ShippedBinding.onScheduler && routing.barrier.readyOrUncounted) locations(split.index) else Nil

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val binding = shipped.forTask(split.index)
    val remaining = mutable.Queue.from(split.asInstanceOf[TurnPartition].shardPartitions)
    def next() = firstParent[InternalRow].iterator(remaining.dequeue(), context)
    if (binds) TaskLeases.install(context, shipped.lease, binding.shardsOf(split.index))
    else {
      TaskCommits.together(context, remaining.size)
      // A consumer such as a limit may stop early. Every partition is started nevertheless, as if it had a task of its
      // own.
      context.addTaskCompletionListener[Unit] { ended =>
        if (!ended.isFailed() && !ended.isInterrupted()) while (remaining.nonEmpty) next().hasNext: Unit
      }
    }
    Iterator.continually(()).takeWhile(_ => remaining.nonEmpty).flatMap(_ => next())
  }
}

/** Narrow dependency on the partitions of a task's shards. Until the binding is decided, it covers all partitions. */
final private class TurnDependency(parent: RDD[InternalRow], @transient private val routing: RegionRouting)
    extends NarrowDependency[InternalRow](parent) {
  override def getParents(task: Int): Seq[Int] =
    routing.barrier.decision.fold[Seq[Int]](parent.partitions.indices)(_.binding.shardsOf(task).toSeq)
}

/** Partition of a task. It is serialized after its stage, so the binding has been decided by then. */
final private class TurnPartition(
    override val index: Int,
    @transient private val parent: RDD[InternalRow],
    @transient private val routing: RegionRouting
) extends Partition {

  /** Partitions of the task's shards. Set only when the partition is serialized for a task. */
  var shardPartitions: Array[Partition] = Array.empty

  private def writeObject(out: ObjectOutputStream): Unit = {
    if (routing != null) routing.barrier.decision.foreach { d =>
      shardPartitions = d.binding.shardsOf(index).map(parent.partitions(_))
    }
    out.defaultWriteObject()
  }
}
