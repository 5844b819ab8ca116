package io.penstock.context

/**
 * Finds a component in the current context, for code that Spark creates and that therefore gets no constructor
 * arguments: state store providers, operators, RDDs and rules. The companion object of the component's class is its key.
 *
 * @param contexts
 *   [[DriverContext]] or [[ExecutorContext]]
 */
abstract class ComponentKey[C <: Component](contexts: Contexts) {

  /**
   * The component of the current context. Takes no lock.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_NOT_ENABLED if this process has no context, or its context has no such component
   */
  def current: C = {
    val context = contexts.current
    context.find(this).getOrElse(throw Contexts.missing(s"the context of the ${context.role} has no $this"))
  }

  /** The component, if there is a context that has it. */
  def find: Option[C] = contexts.find.flatMap(_.find(this))

  override def toString: String = getClass.getSimpleName.stripSuffix("$")
}
