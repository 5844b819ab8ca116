package io.penstock.context

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

/**
 * All mutable state of this process that belongs to one application. The plugin creates it and shuts it down.
 *
 * @param role
 *   "driver" or "executor"
 */
final class ProcessContext private[context] (val role: String, contexts: Contexts) {
  private val log = LoggerFactory.getLogger(getClass)
  private val byKey = new ConcurrentHashMap[ComponentKey[_], Component]()
  @volatile private var created = Vector.empty[Component]
  private var ended = false

  /** Adds a component. It is closed before those that were added earlier. */
  def own[C <: Component](component: C): C = synchronized {
    if (ended) {
      component.close()
      throw new IllegalStateException(s"the context of the $role was shut down")
    }
    created :+= component
    component
  }

  /** Adds a component that is found by its key. */
  def own[C <: Component](key: ComponentKey[C], component: C): C = {
    require(byKey.putIfAbsent(key, component) == null, s"the context of the $role has a $key already")
    own(component)
  }

  /** The components in the order in which they were added, also after the shutdown. */
  def components: Seq[Component] = created

  private[context] def find[C <: Component](key: ComponentKey[C]): Option[C] =
    Option(byKey.get(key).asInstanceOf[C])

  /** Closes all components in reverse order. A component that fails does not keep the others from being closed. */
  def shutdown(): Unit = {
    val first = synchronized {
      val first = !ended
      ended = true
      first
    }
    if (first) {
      created.reverseIterator.foreach { component =>
        try component.close()
        catch { case NonFatal(e) => log.warn(s"Penstock: ${component.getClass.getName} was not closed completely", e) }
      }
      contexts.ended(this)
    }
  }
}
