package org.apache.spark.sql.penstock.routing

import java.io.File
import java.lang.reflect.Modifier
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec

import org.scalatest.funsuite.AnyFunSuite

/** Every physical operator in Spark's jars is registered. */
class NodeKindSuite extends AnyFunSuite {

  private lazy val operators: Seq[Class[_]] = sys.props("java.class.path").split(File.pathSeparator).toSeq
    .filter(path => path.endsWith(".jar") && new File(path).getName.startsWith("spark-")).flatMap(inJar)

  private def inJar(path: String): Seq[Class[_]] = Using.resource(new JarFile(path)) { jar =>
    jar.entries.asScala.map(_.getName).filter(n => n.startsWith("org/apache/spark/sql/") && n.endsWith(".class")).toSeq
      .flatMap(n =>
        Try(Class.forName(n.stripSuffix(".class").replace('/', '.'), false, getClass.getClassLoader)).toOption
      )
      .filter(c => classOf[SparkPlan].isAssignableFrom(c) && !Modifier.isAbstract(c.getModifiers))
  }

  test("the scan finds Spark's operators") {
    assert(operators.size > 150 && operators.contains(classOf[ProjectExec]), operators.size)
  }

  test("every operator is registered with its handling of partitions, or as unknown with a reason") {
    val unknown = operators.filter(NodeKind.of(_).isEmpty).map(_.getName).sorted
    assert(
      unknown.isEmpty,
      "unregistered operators: add each to NodeKind, or to NodesOfVersion if only one Spark version has it"
    )
  }

  test("nodes of other projects are unknown") {
    assert(NodeKind.of(classOf[ForeignExec]).isEmpty)
  }

  test("leaf nodes and commands do not keep partitions of an input") {
    val these =
      operators.filter(c => classOf[LeafExecNode].isAssignableFrom(c) || classOf[V2CommandExec].isAssignableFrom(c))
    val keeping = these.filter(NodeKind.of(_).contains(NodeKind.KeepsPartitions)).map(_.getSimpleName)
    assert(keeping == Seq("WriteToDataSourceV2Exec"))
  }
}
