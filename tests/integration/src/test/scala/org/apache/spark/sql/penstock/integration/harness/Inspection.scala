package org.apache.spark.sql.penstock.integration.harness

import java.nio.file.{Files, Path}

import scala.util.Random

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

/** Runs `penstock inspect` on a checkpoint. It must find no problem, and then every planted fault. */
object Inspection {
  implicit private val formats: Formats = DefaultFormats

  /** Describes what is wrong with the command's output, if anything is. */
  def contradiction(checkpoint: Path, seed: Long): Option[String] = {
    val (status, printed) = inspect(checkpoint)
    val random = new Random(seed)
    if (status != 0) Some(s"penstock inspect --verify ends with $status: ${printed.takeRight(4000)}")
    else flipped(checkpoint, printed, random).orElse(deleted(checkpoint, printed, random))
  }

  /** Flips one bit of a needed file. */
  private def flipped(checkpoint: Path, printed: String, random: Random): Option[String] = {
    val path = pick(needed(printed), random)
    planted(checkpoint, path) { intact =>
      val at = random.nextInt(intact.length)
      intact(at) = (intact(at) ^ (1 << random.nextInt(8))).toByte
      Some(intact)
    }
  }

  /**
   * Deletes a needed file. Does not choose the newest manifest, because the batch before would become the newest, or
   * one of several manifests of a batch, because the others may suffice.
   */
  private def deleted(checkpoint: Path, printed: String, random: Random): Option[String] = {
    val all = needed(printed)
    val manifests = all.filter(_.startsWith("manifests/")).groupBy(batchOf).toSeq.sortBy(_._1)
    val single = manifests.dropRight(1).map(_._2).filter(_.size == 1).flatten
    val candidates = single ++ all.filter(f => f.startsWith("changelogs/") || f.startsWith("snapshots/"))
    if (candidates.isEmpty) None else planted(checkpoint, pick(candidates, random))(_ => None)
  }

  private def batchOf(manifest: String): Long = manifest.stripPrefix("manifests/").takeWhile(_.isDigit).toLong

  private def needed(printed: String): Seq[String] =
    (parse(printed) \ "files").children.filter(f => (f \ "needed").extract[Boolean]).map(f =>
      (f \ "path").extract[String]
    )

  private def pick(files: Seq[String], random: Random): String = files(random.nextInt(files.size))

  private def planted(checkpoint: Path, path: String)(
      change: Array[Byte] => Option[Array[Byte]]
  ): Option[String] = {
    val file = checkpoint.resolve("state").resolve("_penstock").resolve(path)
    val intact = Files.readAllBytes(file)
    change(intact.clone()).fold(Files.delete(file))(Files.write(file, _): Unit)
    val (status, found) = inspect(checkpoint)
    Files.write(file, intact)
    val problems = (parse(found) \ "verified" \ "problems").children
    val named = problems.exists(p => Seq("file", "what").exists(f => (p \ f).extract[String].contains(path)))
    Option.unless(named)(
      s"penstock inspect --verify ends with $status although $path was changed or deleted: ${found.takeRight(4000)}"
    )
  }

  /** Exit status of `penstock inspect --verify`, and the problems that it reports: error classes with texts. */
  def verified(location: String): (Int, Seq[(String, String)]) = {
    val (status, printed) = inspect(location)
    val problems = (parse(printed) \ "verified" \ "problems").children
    (status, problems.map(p => (p \ "errorClass").extract[String] -> (p \ "what").extract[String]))
  }

  private def inspect(checkpoint: Path): (Int, String) = inspect(checkpoint.toString)

  private def inspect(location: String): (Int, String) = {
    val process =
      new ProcessBuilder(
        CommandLine.penstock.toString,
        "inspect",
        location,
        "--verify",
        "--json"
      ).redirectErrorStream(true).start()
    process.getOutputStream.close()
    val printed = new String(process.getInputStream.readAllBytes())
    (process.waitFor(), printed)
  }
}
