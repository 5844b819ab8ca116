package io.penstock.benchmarks

/** Who writes the checkpoint's files, on every side of a comparison. */
sealed abstract class FileManager(val name: String, val settings: Map[String, String])

object FileManager {

  /** What Spark takes for a local disk: it forks `chmod` for every file. */
  case object Default extends FileManager("default", Map.empty)

  /** The same guarantees without child processes. */
  case object Local
      extends FileManager(
        "local",
        Map("spark.sql.streaming.checkpointFileManagerClass" -> "io.penstock.LocalCheckpointFileManager")
      )

  /** By name; `both` is both. */
  def named(name: String): Seq[FileManager] = name match {
    case "both" => Seq(Default, Local)
    case "default" => Seq(Default)
    case "local" => Seq(Local)
    case other => throw new IllegalArgumentException(s"file manager $other; allowed: default, local, both")
  }
}
