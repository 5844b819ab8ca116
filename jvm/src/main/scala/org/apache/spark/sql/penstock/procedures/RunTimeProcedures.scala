package org.apache.spark.sql.penstock.procedures

import java.util.{Collections, Iterator => JIterator}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.connector.catalog.procedures.{BoundProcedure, ProcedureParameter, UnboundProcedure}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.penstock.routing.RunTimePins
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.{DataType, StringType, StructType}

import io.penstock.Penstock
import io.penstock.errors.PenstockException

/**
 * SQL procedures that change running queries, for clients that cannot call the driver: Spark Connect clients and SQL.
 * The first argument is the run id, the id or the name of a query of the session.
 */
object RunTimeProcedures {

  /** All procedures, by name. */
  val all: Map[String, UnboundProcedure] =
    Seq(SetOption, new PinKey("pin", pin = true), new PinKey("unpin", pin = false)).map(p => p.name -> p).toMap

  private object SetOption extends UnboundProcedure {
    override def name: String = "set"
    override def description: String = "sets an option of a running query: set(query, name, value)"

    override def bind(inputType: StructType): BoundProcedure =
      new Bound(name, Seq("query", "name", "value").map(_ -> StringType)) {
        override protected def run(arguments: InternalRow): Unit = {
          val Seq(query, option, value) = (0 to 2).map(text(arguments, _)): @unchecked
          Penstock.setOption(find(query, s"$option=$value was not set"), option, value)
        }
      }
  }

  /** Pins or unpins a key. The values of the key have the types of the caller's arguments. */
  final private class PinKey(override val name: String, pin: Boolean) extends UnboundProcedure {
    override def description: String =
      s"${if (pin) "gives a key a shard of its own" else "returns a pinned key to its base shard"}: $name(query, value, ...)"

    override def bind(inputType: StructType): BoundProcedure = {
      val types = inputType.map(_.dataType).drop(1)
      new Bound(name, ("query" -> StringType) +: types.zipWithIndex.map { case (t, i) => s"value${i + 1}" -> t }) {
        override protected def run(arguments: InternalRow): Unit = {
          val key = types.zipWithIndex.map { case (t, i) => Literal(arguments.get(i + 1, t), t) }
          val failure = RunTimePins.notDone(key.map(_.sql), pin)
          RunTimePins.order(find(text(arguments, 0), failure), failure, pin)(_ => key)
        }
      }
    }
  }

  abstract private class Bound(override val name: String, inputs: Seq[(String, DataType)]) extends BoundProcedure {
    protected def run(arguments: InternalRow): Unit

    override def parameters: Array[ProcedureParameter] =
      inputs.map { case (parameter, dataType) => ProcedureParameter.in(parameter, dataType).build() }.toArray
    override def isDeterministic: Boolean = false
    override def call(arguments: InternalRow): JIterator[Scan] = {
      run(arguments)
      Collections.emptyIterator()
    }

    protected def text(arguments: InternalRow, at: Int): String =
      Option(arguments.getUTF8String(at)).fold("null")(_.toString)
  }

  private def find(identifier: String, failure: String): StreamingQuery = {
    val active = SparkSession.active.streams.active.toSeq
    active.find(q => Seq(q.runId.toString, q.id.toString, q.name).contains(identifier)).getOrElse {
      val running = active.map(q => Option(q.name).fold("")(_ + ", ") + s"run ${q.runId}").sorted
      throw new PenstockException(
        "PENSTOCK_NOT_RUNNING",
        s"$failure: this session has no running query with the run id, id or name $identifier. " +
          (if (running.isEmpty) "No query is running." else s"Running queries: ${running.mkString("; ")}.")
      )
    }
  }
}
