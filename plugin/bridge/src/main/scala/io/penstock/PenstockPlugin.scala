package io.penstock

import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, SparkPlugin}

/**
 * The entry point that `spark.plugins` names. It only finds the jar with the actual plugin: on the class path, for
 * example from `--jars`, or next to the Python package that was installed with it (see [[InstalledJar]]).
 *
 * Errors contain Penstock's error classes as text, because the exception class is in the other jar.
 */
class PenstockPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = part[DriverPlugin]("io.penstock.PenstockDriverPlugin")

  override def executorPlugin(): ExecutorPlugin = part[ExecutorPlugin]("io.penstock.PenstockExecutorPlugin")

  private def part[T](className: String): T = {
    val loader = Option(Thread.currentThread().getContextClassLoader).getOrElse(getClass.getClassLoader)
    val found: Class[_] =
      try Class.forName(className, true, loader)
      catch {
        case _: ClassNotFoundException =>
          InstalledJar.addTo(loader)
          Class.forName(className, true, loader)
      }
    found.getDeclaredConstructor().newInstance().asInstanceOf[T]
  }
}
