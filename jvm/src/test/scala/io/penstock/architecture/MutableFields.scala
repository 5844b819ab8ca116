package io.penstock.architecture

import scala.jdk.CollectionConverters._

import com.tngtech.archunit.core.domain.{JavaClass, JavaField, JavaModifier}

/** Fields of Scala objects that can change. */
private object MutableFields {
  private val mutableTypes = Seq(
    "java.util.Map",
    "java.util.Collection",
    "java.util.concurrent.Executor",
    "java.lang.ThreadLocal",
    "java.lang.Thread",
    "scala.collection.mutable.Iterable",
    "scala.collection.mutable.Builder",
    "io.penstock.context.Component",
    "com.codahale.metrics.Counter"
  )

  /** Whether a class is that of a Scala object. */
  def isObject(c: JavaClass): Boolean = c.getName.endsWith("$") && c.tryGetField("MODULE$").isPresent

  /** Variables, and values of mutable types. */
  def of(module: JavaClass): Seq[JavaField] =
    module.getFields.asScala.toSeq.filter(f => !isOfCompiler(f) && (isVariable(module, f) || isMutable(f.getRawType)))

  private def isOfCompiler(field: JavaField): Boolean =
    field.getName == "MODULE$" || field.getName.startsWith("bitmap$") || field.getName.endsWith("$$log_")

  /** A lazy value is not final either, but has a method that computes it. */
  private def isVariable(module: JavaClass, field: JavaField): Boolean =
    !field.getModifiers.contains(JavaModifier.FINAL) &&
      !module.getMethods.asScala.exists(_.getName == s"${field.getName}$$lzycompute")

  private def isMutable(c: JavaClass): Boolean =
    c.getPackageName == "java.util.concurrent.atomic" || mutableTypes.exists(c.isAssignableTo)
}
