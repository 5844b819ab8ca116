package io.penstock

import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure
import org.apache.spark.sql.connector.catalog.{Identifier, ProcedureCatalog}
import org.apache.spark.sql.penstock.procedures.RunTimeProcedures
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.penstock.errors.PenstockException

/** The SQL catalog `penstock`, which the plugin registers. It has only procedures. */
class PenstockCatalog extends ProcedureCatalog {
  private var catalog = "penstock"

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = catalog = name

  override def name(): String = catalog

  override def loadProcedure(ident: Identifier): UnboundProcedure =
    RunTimeProcedures.all.getOrElse(
      (ident.namespace.toSeq :+ ident.name.toLowerCase).mkString("."),
      throw new PenstockException(
        "PENSTOCK_NO_SUCH_PROCEDURE",
        s"unknown procedure $catalog.$ident. Allowed: ${RunTimeProcedures.all.keys.toSeq.sorted.mkString(", ")}."
      )
    )

  override def listProcedures(namespace: Array[String]): Array[Identifier] =
    if (namespace.isEmpty) RunTimeProcedures.all.keys.toArray.sorted.map(Identifier.of(namespace, _)) else Array.empty
}
