package io.penstock.process

import java.nio.file.{Files, Path, Paths}

import scala.util.Try

/**
 * The Python into which the wheel installed this jar. It has the package `penstock`, whether it is activated or not.
 */
object InstalledPython {

  /**
   * None if the jar is not in the folder where the wheel installs it, for example because Spark sent it to an executor.
   */
  def ofThisJar: Option[String] =
    Try(Paths.get(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)).toOption.flatMap(of)

  /**
   * The Python of the environment that contains `lib/python3.X/site-packages/penstock/jars/<jar>`.
   *
   * @param jar
   *   absolute path of the jar
   */
  def of(jar: Path): Option[String] = {
    val up = Iterator.iterate(jar.getParent)(_.getParent).takeWhile(_ != null).take(6).toSeq
    val names = up.map(folder => String.valueOf(folder.getFileName))
    Option.when(up.size == 6 && names.take(2) == Seq("jars", "penstock") && names(4) == "lib")(
      up(5).resolve("bin").resolve("python3")
    ).filter(Files.isExecutable(_)).map(_.toString)
  }
}
