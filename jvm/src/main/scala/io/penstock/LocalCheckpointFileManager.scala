package io.penstock

import java.io.{BufferedOutputStream, FileNotFoundException, IOException}
import java.net.URI
import java.nio.channels.FileChannel
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{FileAlreadyExistsException => NioFileAlreadyExists, Path => NioPath, _}
import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{
  FSDataInputStream,
  FileAlreadyExistsException,
  FileStatus,
  FileSystem,
  Path,
  PathFilter,
  RawLocalFileSystem
}
import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

import io.penstock.conf.Settings
import io.penstock.errors.PenstockException

/**
 * A checkpoint file manager for local disks that starts no child processes. Spark's default manager forks a `chmod` for
 * every file, which takes longer than writing the file. To use this manager, set
 * `spark.sql.streaming.checkpointFileManagerClass` to the name of this class.
 *
 * A file appears under its name when it is complete, or not at all. Without overwriting, creation is exclusive, also
 * between processes: the file is a hard link to the finished temporary file. Files are interchangeable with those of
 * Spark's default manager.
 *
 * @param path
 *   path of the checkpoint; its scheme, or the default file system's scheme if it has none, must be `file`
 * @throws io.penstock.errors.PenstockException
 *   PENSTOCK_NOT_A_LOCAL_PATH for a path on another file system
 */
class LocalCheckpointFileManager(path: Path, hadoopConf: Configuration) extends CheckpointFileManager {
  private val defaultScheme = FileSystem.getDefaultUri(hadoopConf).getScheme
  local(path)

  private val fsync: Boolean = Settings.lookedUp(Settings.CheckpointFsync)(k => Option(hadoopConf.get(k)))

  // Used only to open files, which needs no child process.
  private val reader = {
    val fs = new RawLocalFileSystem
    fs.initialize(URI.create("file:///"), hadoopConf)
    fs
  }

  /**
   * A stream to a temporary file in the directory of `path`. `close` moves the file to `path`, `cancel` deletes it.
   *
   * @throws java.io.FileNotFoundException
   *   if the directory does not exist
   */
  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    val target = local(path)
    val task = Option(TaskContext.get()).fold("")(t => s".TID${t.taskAttemptId()}")
    val temporary = target.resolveSibling(s".${target.getFileName}.${UUID.randomUUID()}$task.tmp")
    val channel =
      try FileChannel.open(temporary, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
      catch { case _: NoSuchFileException => throw new FileNotFoundException(s"${target.getParent} does not exist") }
    new AtomicStream(channel, temporary, target, overwriteIfPossible)
  }

  final private class AtomicStream(channel: FileChannel, temporary: NioPath, target: NioPath, overwrite: Boolean)
      extends CancellableFSDataOutputStream(
        new BufferedOutputStream(java.nio.channels.Channels.newOutputStream(channel), 1 << 15)
      ) {
    private var terminated = false

    override def close(): Unit = synchronized {
      if (!terminated) {
        terminated = true
        try {
          underlyingStream.flush()
          if (fsync) channel.force(true)
          underlyingStream.close()
          publish()
        } finally {
          channel.close()
          Files.deleteIfExists(temporary)
        }
      }
    }

    override def cancel(): Unit = synchronized {
      if (!terminated) {
        terminated = true
        try channel.close()
        finally Files.deleteIfExists(temporary)
      }
    }

    private def publish(): Unit = {
      // An earlier file of this name may have left a checksum file, against which Spark's default manager checks the
      // file.
      Files.deleteIfExists(checksumFile(target))
      if (overwrite) Files.move(temporary, target, StandardCopyOption.ATOMIC_MOVE)
      else linkExclusively()
      if (fsync) Using.resource(FileChannel.open(target.getParent, StandardOpenOption.READ))(_.force(true))
    }

    /** Whether the file system does not support hard links. A full or read-only disk has other error messages. */
    private def saysNoLinks(e: FileSystemException): Boolean =
      Seq("not permitted", "not supported", "not implemented", "Too many links")
        .exists(Option(e.getReason).getOrElse("").contains(_))

    private def noHardLinks(cause: Exception) = new PenstockException(
      "PENSTOCK_NO_HARD_LINKS",
      s"$target could not be created exclusively, because the file system did not create a hard link ($cause). Put " +
        "the checkpoint on a file system with hard links, or unset spark.sql.streaming.checkpointFileManagerClass.",
      cause
    )

    private def linkExclusively(): Unit =
      try Files.createLink(target, temporary)
      catch {
        case _: NioFileAlreadyExists => throw new FileAlreadyExistsException(s"$target already exists")
        case e: UnsupportedOperationException => throw noHardLinks(e)
        case e: FileSystemException if saysNoLinks(e) => throw noHardLinks(e)
      }
  }

  override def open(path: Path): FSDataInputStream = reader.open(new Path(local(path).toUri))

  /**
   * The files and directories in a directory, or the file itself if `path` is a file.
   *
   * @throws java.io.FileNotFoundException
   *   if `path` does not exist
   */
  override def list(path: Path, filter: PathFilter): Array[FileStatus] = {
    val root = local(path)
    val entries =
      try {
        if (Files.isDirectory(root)) Using.resource(Files.list(root))(_.iterator().asScala.toArray)
        else Array(root)
      } catch { case _: NoSuchFileException => throw missing(root) }
    val found = entries.filterNot(isChecksumFile).flatMap(status)
    if (found.isEmpty && !Files.exists(root)) throw missing(root)
    found.filter(s => filter.accept(s.getPath)).sortBy(_.getPath.getName)
  }

  /** None if the file has been deleted since it was listed. */
  private def status(file: NioPath): Option[FileStatus] =
    try {
      val a = Files.readAttributes(file, classOf[BasicFileAttributes])
      val length = if (a.isDirectory) 0L else a.size
      Some(new FileStatus(length, a.isDirectory, 1, BlockSize, a.lastModifiedTime.toMillis, qualified(file)))
    } catch { case _: NoSuchFileException => None }

  override def mkdirs(path: Path): Unit = {
    val directory = local(path)
    // `createDirectories` fails if the path is a link to a directory.
    if (!Files.isDirectory(directory)) Files.createDirectories(directory)
  }

  override def exists(path: Path): Boolean = Files.exists(local(path))

  /** Deletes a file or a directory tree, even while others delete or write there. Links are not followed. */
  override def delete(path: Path): Unit = {
    val root = local(path)
    Files.deleteIfExists(checksumFile(root))
    deleteTree(root, attempts = 3)
  }

  private def deleteTree(file: NioPath, attempts: Int): Unit =
    try {
      if (Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
        Using.resource(Files.newDirectoryStream(file))(_.asScala.foreach(deleteTree(_, attempts)))
      }
      Files.deleteIfExists(file)
    } catch {
      case _: NoSuchFileException => // Another process has deleted it.
      case _: DirectoryNotEmptyException if attempts > 1 => deleteTree(file, attempts - 1)
    }

  override def isLocal: Boolean = true

  override def createCheckpointDirectory(): Path = {
    mkdirs(path)
    qualified(local(path))
  }

  private def qualified(file: NioPath): Path = new Path("file", null, file.toString)

  private def missing(file: NioPath): IOException = new FileNotFoundException(s"$file does not exist")

  private def checksumFile(file: NioPath): NioPath = file.resolveSibling(s".${file.getFileName}.crc")

  private def isChecksumFile(file: NioPath): Boolean = {
    val name = file.getFileName.toString
    name.startsWith(".") && name.endsWith(".crc")
  }

  private def local(p: Path): NioPath = {
    val scheme = Option(p.toUri.getScheme).getOrElse(defaultScheme)
    if (scheme != "file") {
      throw new PenstockException(
        "PENSTOCK_NOT_A_LOCAL_PATH",
        s"$p is on the file system '$scheme', but ${getClass.getName} handles local files only. Use a path that " +
          "starts with file:/, or unset spark.sql.streaming.checkpointFileManagerClass."
      )
    }
    Paths.get(p.toUri.getPath).toAbsolutePath.normalize
  }

  private def BlockSize = 1L << 25
}
