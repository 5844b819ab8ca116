package org.apache.spark.sql.penstock.integration.chaos

import java.nio.file.{Files, Path}

import scala.util.Random

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

/** `penstock inspect` on a checkpoint: it must find nothing wrong, and then whatever was broken on purpose. */
object Inspection {
  implicit private val formats: Formats = DefaultFormats

  /** The command, as the Makefile's virtual environment has it. */
  private val command = sys.props.getOrElse("penstock.test.cli", ".venv/bin/penstock")

  /** What is wrong with the command's answers, if anything is. */
  def contradiction(checkpoint: Path, seed: Long): Option[String] = {
    val (status, printed) = inspect(checkpoint)
    if (status != 0) Some(s"penstock inspect --verify ends with $status: ${printed.takeRight(4000)}")
    else plant(checkpoint, printed, new Random(seed))
  }

  /** One bit of one file that is needed. */
  private def plant(checkpoint: Path, printed: String, random: Random): Option[String] = {
    val files = (parse(printed) \ "files").children.filter(f => (f \ "needed").extract[Boolean])
    val path = (files(random.nextInt(files.size)) \ "path").extract[String]
    val file = checkpoint.resolve("state").resolve("_penstock").resolve(path)
    val intact = Files.readAllBytes(file)
    val damaged = intact.clone()
    val at = random.nextInt(damaged.length)
    damaged(at) = (damaged(at) ^ (1 << random.nextInt(8))).toByte
    Files.write(file, damaged)
    val (status, found) = inspect(checkpoint)
    Files.write(file, intact)
    val named = (parse(found) \ "verified" \ "problems").children.map(p => (p \ "file").extract[String])
    Option.unless(named.contains(path)) {
      s"penstock inspect --verify ends with $status although byte $at of $path was changed: ${found.takeRight(4000)}"
    }
  }

  private def inspect(checkpoint: Path): (Int, String) = {
    val process =
      new ProcessBuilder(
        command,
        "inspect",
        checkpoint.toString,
        "--verify",
        "--json"
      ).redirectErrorStream(true).start()
    process.getOutputStream.close()
    val printed = new String(process.getInputStream.readAllBytes())
    (process.waitFor(), printed)
  }
}
