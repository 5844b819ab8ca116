package org.apache.spark.sql.penstock.storage

import java.io.{EOFException, FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumException, FSDataInputStream, FileAlreadyExistsException, FileStatus, Path}
import org.apache.spark.SparkException
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.runtime.StreamMetadata
import org.apache.spark.util.ThreadUtils

import io.penstock.errors.PenstockException
import io.penstock.state.format._

/**
 * The files of one query's state below `<checkpoint>/state/_penstock`, accessed through Spark's checkpoint file
 * manager. Handles file names and frames; the callers interpret the contents.
 */
final class StateDirectory(val stateRoot: String, hadoopConf: Configuration) {
  val root = new Path(stateRoot, StateDirectory.Name)
  private lazy val files = CheckpointFileManager.create(root, hadoopConf)

  /**
   * Writes a file that must not exist yet.
   *
   * @param path
   *   relative to the directory
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CONCURRENT_RUN if the file exists, which means that another run of the query has written it;
   *   PENSTOCK_CANNOT_WRITE
   */
  def write(path: String, kind: Int, body: Array[Byte], payload: Array[Byte], payloadLength: Int): Unit =
    begin(path).finish(kind, body, payload, payloadLength)

  /**
   * Creates a file that must not exist yet. It is not visible before it is finished.
   *
   * @param path
   *   relative to the directory
   * @throws io.penstock.errors.PenstockException
   *   the same as for `write`
   */
  def begin(path: String): NewFile = writing(path) {
    val target = new Path(root, path)
    ensureParent(target)
    new NewFile(path, files.createAtomic(target, overwriteIfPossible = false))
  }

  /** A file that must be finished or cancelled. */
  final class NewFile private[StateDirectory] (path: String, out: CancellableFSDataOutputStream) {

    /** Writes the content of the file. Arguments and errors are those of `write`. */
    def finish(kind: Int, body: Array[Byte], payload: Array[Byte], payloadLength: Int): Unit = writing(path) {
      fill(out) {
        out.write(FileFormat.frame(kind, body))
        out.write(payload, 0, payloadLength)
      }
    }

    def cancel(): Unit = out.cancel()
  }

  /** Writes a file that was created and renames it to its final name. Cancels it if that fails. */
  private def fill(out: CancellableFSDataOutputStream)(write: => Unit): Unit =
    try {
      write
      out.close()
    } catch {
      case NonFatal(e) =>
        out.cancel()
        throw e
    }

  private def writing[A](path: String)(body: => A): A =
    try body
    catch {
      case e: FileAlreadyExistsException =>
        throw new PenstockException(
          "PENSTOCK_CONCURRENT_RUN",
          s"${name(path)} already exists: another run of this query with the same checkpoint has written it. Stop " +
            "the other run, then start the query again.",
          e
        )
      case e: IOException => throw cannotWrite(name(path), e)
    }

  private def cannotWrite(file: String, e: Throwable) = new PenstockException(
    "PENSTOCK_CANNOT_WRITE",
    s"$file could not be written: $e. No batch that was committed is lost. Free space on that file system, or " +
      "restore the permission to write there, then start the query again.",
    e
  )

  /** The manifest of a batch. */
  def readManifest(batchId: Long, generation: Long): Manifest = {
    val path = Container.InManifest(batchId, generation).path
    val manifest = read(path, FileFormat.Kind.Manifest)(body => ManifestFormat.decode(body.bytes))
    if (manifest.batchId != batchId || manifest.generation != generation) {
      throw FileFormat.corrupt(
        name(path),
        FileFormat.HeaderBytes,
        s"it is the manifest of batch ${manifest.batchId}, generation ${manifest.generation}, but its name says " +
          s"batch $batchId, generation $generation"
      )
    }
    manifest
  }

  /** The newest generation of every batch's manifest. */
  def newestGenerations(): Map[Long, Long] = manifests().groupMapReduce(_._1)(_._2)(math.max)

  /** Batch id and generation of every manifest there is. */
  def manifests(): Seq[(Long, Long)] =
    list("manifests").map(_.split('.')).flatMap {
      case Array(b, g) => b.toLongOption.zip(g.toLongOption)
      case _ => None
    }

  /** File names in a folder; empty if the folder does not exist. */
  def list(folder: String): Seq[String] =
    listed(new Path(root, folder)).map(_.getPath.getName).filterNot(_.startsWith("."))

  private def listed(folder: Path): Seq[FileStatus] =
    try files.list(folder).toSeq
    catch { case _: FileNotFoundException => Nil }

  /** The first bytes of a file, fewer if it is shorter; None if it does not exist. */
  def head(path: String, most: Int): Option[Array[Byte]] =
    if (!exists(path)) None
    else open(path, StateDirectory.WholeState)(in => Some(in.head(most)))

  def exists(path: String): Boolean = files.exists(new Path(root, path))

  def delete(path: String): Unit = files.delete(new Path(root, path))

  /**
   * Reads and decodes the body of a file, without its payload.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_MISSING_FILE, PENSTOCK_CORRUPT_FILE, PENSTOCK_NEWER_FORMAT, like every reader of this class
   */
  def read[A](path: String, kind: Int)(decode: FileFormat.Body => A): A = {
    val body = open(path, StateDirectory.WholeState)(_.body(kind))
    FileFormat.needed(StateDirectory.WholeState)(FileFormat.reading(name(path), FileFormat.HeaderBytes)(decode(body)))
  }

  /**
   * Reads sections of one container in the given order, and checks each.
   *
   * @param neededBy
   *   describes what needs the sections, for error messages
   */
  def readSections[A](container: Container, sections: Seq[SectionRef], neededBy: => String)(
      read: SectionBytes => A
  ): Seq[A] = open(container.path, neededBy)(in => sections.map(in.section(_)(read)))

  /** The description of the query, if the query has written state before. */
  def readDescription(): Option[QueryDescription] =
    if (!exists(StateDirectory.Description)) None
    else Some(read(StateDirectory.Description, FileFormat.Kind.Format)(body => QueryDescription.decode(body.bytes)))

  /** Spark's id of the query that the checkpoint belongs to; empty if the state is not in a query's checkpoint. */
  def queryId: String =
    StreamMetadata.read(new Path(new Path(stateRoot).getParent, "metadata"), hadoopConf).fold("")(_.id)

  def writeDescription(d: QueryDescription): Unit =
    write(StateDirectory.Description, FileFormat.Kind.Format, d.encode, Array.emptyByteArray, 0)

  /**
   * Creates the folders `state/<operator>/<partition>` that are missing. Spark's state reader takes the number of
   * partitions from them. Each folder gets a file, because tools that copy checkpoints leave out empty folders.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CANNOT_WRITE
   */
  def ensurePartitions(operatorId: Long, count: Int): Unit = {
    val operator = operatorFolder(operatorId)
    try {
      val existing = partitions(operatorId)
      // The last file is created last: if it exists, all folders were complete once.
      val wasComplete = files.exists(partitionFile(operator, count - 1))
      val missing = (0 until count).filterNot(p => wasComplete && existing(p))
      if (files.isLocal) missing.foreach(p => createLocally(partitionFile(operator, p)))
      else if (missing.nonEmpty) {
        val (last, others) = missing.partition(_ == count - 1)
        ThreadUtils.parmap(others, "penstock-partitions", StateDirectory.AtOnce)(createPartition(operator, _))
        last.foreach(createPartition(operator, _))
      }
    } catch {
      case e: IOException => throw cannotWrite(operator.toString, e)
      case e: SparkException if e.getCause.isInstanceOf[IOException] => throw cannotWrite(operator.toString, e.getCause)
    }
  }

  /** Numbers of the folders of state partitions that an operator has. */
  def partitions(operatorId: Long): Set[Int] =
    listed(operatorFolder(operatorId)).filter(_.isDirectory).flatMap(_.getPath.getName.toIntOption).toSet

  /** Folder of an operator in Spark's layout of the state directory. */
  def operatorFolder(operatorId: Long): Path = new Path(stateRoot, operatorId.toString)

  private def partitionFile(operator: Path, partition: Int) =
    new Path(new Path(operator, partition.toString), StateDirectory.Name)

  private def createPartition(operator: Path, partition: Int): Unit = {
    val file = partitionFile(operator, partition)
    files.mkdirs(file.getParent)
    val out = files.createAtomic(file, overwriteIfPossible = true)
    fill(out)(out.write(StateDirectory.PartitionContent))
  }

  /** Creates the file without the file manager, which is faster for hundreds of files. Nothing reads their content. */
  private def createLocally(file: Path): Unit = {
    val at = java.nio.file.Paths.get(file.toUri.getPath)
    java.nio.file.Files.createDirectories(at.getParent)
    java.nio.file.Files.write(at, StateDirectory.PartitionContent)
  }

  /** Full name of a file, for error messages. */
  def name(path: String): String = new Path(root, path).toString

  @volatile private var parents = Set.empty[Path]

  private def ensureParent(file: Path): Unit = if (!parents.contains(file.getParent)) {
    if (!files.exists(file.getParent)) files.mkdirs(file.getParent)
    parents += file.getParent
  }

  private def open[A](path: String, neededBy: => String)(use: FileReader => A): A =
    try Using.resource(files.open(new Path(root, path))) { in =>
        FileFormat.needed(neededBy)(use(new FileReader(name(path), new Opened(path, in))))
      }
    catch {
      // Local file systems throw this error also for a file that must not be read.
      case e: FileNotFoundException if !exists(path) =>
        throw new PenstockException(
          "PENSTOCK_MISSING_FILE",
          s"${name(path)} does not exist, but $neededBy needs it. Restore the file, or start the query with a new " +
            "checkpoint location",
          e
        )
      case e: IOException =>
        throw new PenstockException(
          "PENSTOCK_CANNOT_READ",
          s"${name(path)} could not be read, but $neededBy needs it: $e. Nothing is lost as long as the file exists. " +
            "Restore the permission to read it, or wait until its file system responds, then start the query again.",
          e
        )
    }

  /** Hides two differences between file systems: how they report the end of a file, and checksums of their own. */
  final private class Opened(path: String, in: FSDataInputStream) extends FileReader.Source {
    private var behindTheEnd = false

    override def seek(at: Long): Unit = checked {
      behindTheEnd = false
      try in.seek(at)
      catch {
        case e: IOException if !e.isInstanceOf[ChecksumException] && at > length => behindTheEnd = true
      }
    }

    override def read(into: Array[Byte], from: Int, most: Int): Int = checked {
      if (behindTheEnd) -1
      else
        try in.read(into, from, most)
        catch { case _: EOFException => -1 }
    }

    private def length: Long = files.list(new Path(root, path)).map(_.getLen).sum

    private def checked[A](use: => A): A =
      try use
      catch { case e: ChecksumException => throw FileFormat.corrupt(name(path), e.getPos, e.getMessage, e) }
  }
}

object StateDirectory {
  val Name = "_penstock"
  private val Description = "FORMAT"

  /** Content of a state partition's file. It is not empty because some tools leave out empty files. */
  private val PartitionContent = "penstock\n".getBytes(UTF_8)

  /** Partition folders that are created at the same time on a remote file system. */
  private val AtOnce = 16

  /** Names what needs a file that is not specific to some shards, for error messages. */
  private val WholeState = "the state of the query"
}

/**
 * Properties that are fixed for the lifetime of a query, in the file FORMAT.
 *
 * @param queryId
 *   Spark's id of the query, empty if there was none
 */
final case class QueryDescription(shardCount: Int, writtenBy: String, queryId: String) {
  def encode: Array[Byte] = {
    val out = new ByteSink(64)
    out.putVarint(shardCount)
    out.putString(writtenBy)
    out.putString(queryId)
    out.toByteArray
  }
}

object QueryDescription {

  /** @throws io.penstock.state.format.MalformedData if the bytes do not follow the format */
  def decode(body: Array[Byte]): QueryDescription = {
    val in = new ByteSource(body)
    val shardCount = in.getNumber("number of shards", 1L, FileFormat.MaxShards).toInt
    val d = QueryDescription(shardCount, in.getString(), in.getString())
    in.expectEnd("field")
    d
  }
}
