package org.apache.spark.sql.penstock.state

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.datasources.v2.state.StateScan
import org.apache.spark.sql.execution.{CoalesceExec, SparkPlan}
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.conf.{Mode, Settings}

/**
 * Lets Spark's state reader, `spark.read.format("statestore")`, read several state partitions in one task. Spark plans
 * one task for each partition, however small it is. What a task has read stays in memory until it ends, so the number
 * of tasks grows with the bytes to read.
 */
final class StateReadRule(session: SparkSession) extends Rule[SparkPlan] {
  import StateReadRule._

  override def apply(plan: SparkPlan): SparkPlan = plan match {
    case CoalesceExec(_, _: BatchScanExec) => plan
    case scan: BatchScanExec => tasks(scan).filter(_ < scan.inputPartitions.size).fold(plan)(CoalesceExec(_, scan))
    case node => node.mapChildren(apply)
  }

  /** Number of tasks for a scan. None if the state is not Penstock's or cannot be read; the reader reports why. */
  private def tasks(scan: BatchScanExec): Option[Int] = scan.scan match {
    case state: StateScan if Settings.application(Settings.Mode, session.conf.getAll) == Mode.On =>
      Described.findFirstMatchIn(state.description()).flatMap { found =>
        Try(bytes(found.group(1), found.group(2).toLong, found.group(3).toLong)).toOption.flatten
      }.map(bytes => math.max(session.sparkContext.defaultParallelism.toLong, bytes / BytesOfTask + 1).toInt)
    case _ => None
  }

  private def bytes(stateRoot: String, batchId: Long, operatorId: Long): Option[Long] = {
    val conf = session.asInstanceOf[classic.SparkSession].sessionState.newHadoopConf()
    val directory = new StateDirectory(stateRoot, conf)
    directory.newestGenerations().get(batchId).map { generation =>
      val stores = directory.readManifest(batchId, generation).stores.filter(_._1.operatorId == operatorId)
      stores.valuesIterator.flatten.flatMap(_.sections).map(_.length.toLong).sum
    }
  }
}

private object StateReadRule {

  /** Matches Spark's description of a read. */
  private val Described = """\[stateCkptLocation=(.*?)\]\[batchId=(\d+)\]\[operatorId=(\d+)\]""".r

  /** Bytes of files for one task, which needs about twice as many bytes of memory. */
  private val BytesOfTask = 32L << 20
}
