package org.apache.spark.sql.penstock.routing

import java.lang.ref.WeakReference
import java.util.WeakHashMap

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.penstock.lease.BatchLeases
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.util.ThreadUtils

import io.penstock.context.{Component, ComponentKey, DriverContext}
import io.penstock.process.DaemonPool

/**
 * The routing of each session of the application.
 *
 * @param leases
 *   Driver side of the state layer
 */
final class SessionRoutings(leases: BatchLeases) extends Component {

  /** Learns from batches, beside their ends. */
  private val learners = new DaemonPool(ThreadUtils.newDaemonCachedThreadPool("penstock-learning", 4))

  /** Keys and values are weak: the rules of a session refer to its routing, and the routing refers to its session. */
  private val bySession = new WeakHashMap[SparkSession, WeakReference[SessionRouting]]()

  /** The routing of a session; None if the session has none. */
  private[routing] def find(session: SparkSession): Option[SessionRouting] =
    bySession.synchronized(Option(bySession.get(session)).flatMap(r => Option(r.get())))

  /** The routing of a session. All rules of the session get the same instance. */
  private[routing] def of(session: SparkSession): SessionRouting = bySession.synchronized {
    find(session).getOrElse {
      val routing = new SessionRouting(session, leases, learners)
      bySession.put(session, new WeakReference(routing))
      routing
    }
  }

  override def held: Map[String, Long] =
    Map("sessions" -> bySession.synchronized(bySession.size.toLong), "threads" -> learners.size.toLong)

  override def close(): Unit = {
    learners.close()
    bySession.synchronized(bySession.clear())
  }
}

object SessionRoutings extends ComponentKey[SessionRoutings](DriverContext) {

  /** The routing of the session in which an active query runs. */
  private[routing] def ofQuery(query: StreamingQuery): Option[SessionRouting] = query match {
    case w: StreamingQueryWrapper if w.isActive =>
      find.flatMap(_.find(w.streamingQuery.sparkSessionForStream.asInstanceOf[SparkSession]))
    case _ => None
  }
}
