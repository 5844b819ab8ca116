package io.penstock.benchmarks

/** The file manager that writes the checkpoints of all sides of a comparison. */
sealed abstract class FileManager(val name: String, val settings: Map[String, String])

object FileManager {

  /** Spark's default for a local disk, which runs `chmod` in a child process for every file. */
  case object Default extends FileManager("default", Map.empty)

  /** Penstock's file manager, which has the same guarantees and no child processes. */
  case object Local
      extends FileManager(
        "local",
        Map("spark.sql.streaming.checkpointFileManagerClass" -> "io.penstock.LocalCheckpointFileManager")
      )

  /** The file managers with a name, where `both` stands for both of them. */
  def named(name: String): Seq[FileManager] = name match {
    case "both" => Seq(Default, Local)
    case "default" => Seq(Default)
    case "local" => Seq(Local)
    case other => throw new IllegalArgumentException(s"--file-manager is $other; allowed: default, local, both")
  }
}
