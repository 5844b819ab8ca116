package org.apache.spark.sql.penstock.state

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
 * The files of one query's state below `<checkpoint>/state/_penstock`, through Spark's checkpoint file manager. Knows
 * names and frames, not what they mean.
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
   *   PENSTOCK_CONCURRENT_RUN where the file exists: names are given by one run of a query; PENSTOCK_CANNOT_WRITE
   */
  def write(path: String, kind: Int, body: Array[Byte], payload: Array[Byte], payloadLength: Int): Unit =
    begin(path).finish(kind, body, payload, payloadLength)

  /**
   * Creates a file that must not exist yet. Nobody sees it before it is finished.
   *
   * @param path
   *   relative to the directory
   * @throws io.penstock.errors.PenstockException
   *   as of `write`
   */
  def begin(path: String): NewFile = writing(path) {
    val target = new Path(root, path)
    ensureParent(target)
    new NewFile(path, files.createAtomic(target, overwriteIfPossible = false))
  }

  /** A file that is to be finished or cancelled. */
  final class NewFile private[StateDirectory] (path: String, out: CancellableFSDataOutputStream) {

    /** Writes all that the file has. Arguments and errors as of `write`. */
    def finish(kind: Int, body: Array[Byte], payload: Array[Byte], payloadLength: Int): Unit = writing(path) {
      fill(out) {
        out.write(FileFormat.frame(kind, body))
        out.write(payload, 0, payloadLength)
      }
    }

    def cancel(): Unit = out.cancel()
  }

  /** Writes a file that was created, and gives it its name; else it is gone. */
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
          s"${name(path)} exists already: another run of this query, with the same checkpoint, has written it. Stop the " +
            "other run, then start the query again.",
          e
        )
      case e: IOException => throw cannotWrite(name(path), e)
    }

  private def cannotWrite(what: String, e: Throwable) = new PenstockException(
    "PENSTOCK_CANNOT_WRITE",
    s"$what could not be written: $e. No batch that was committed is lost. Make room on that file system, or " +
      "give back the right to write there, then start the query again.",
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
        s"it is the manifest of batch ${manifest.batchId}, generation ${manifest.generation}, not of those that name it"
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

  /** File names in a folder; none where the folder does not exist. */
  def list(folder: String): Seq[String] =
    listed(new Path(root, folder)).map(_.getPath.getName).filterNot(_.startsWith("."))

  private def listed(folder: Path): Seq[FileStatus] =
    try files.list(folder).toSeq
    catch { case _: FileNotFoundException => Nil }

  /** The first bytes of a file, fewer where it is shorter; None where it does not exist. */
  def head(path: String, most: Int): Option[Array[Byte]] =
    if (!exists(path)) None
    else open(path, StateDirectory.WholeState)(in => Some(in.head(most)))

  def exists(path: String): Boolean = files.exists(new Path(root, path))

  def delete(path: String): Unit = files.delete(new Path(root, path))

  /**
   * Reads what the body of a file says; the payload is not read.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_MISSING_FILE, PENSTOCK_CORRUPT_FILE, PENSTOCK_NEWER_FORMAT, as of every reader here
   */
  def read[A](path: String, kind: Int)(decode: FileFormat.Body => A): A = {
    val body = open(path, StateDirectory.WholeState)(_.body(kind))
    FileFormat.needed(StateDirectory.WholeState)(FileFormat.reading(name(path), FileFormat.HeaderBytes)(decode(body)))
  }

  /**
   * Reads sections of one container, in the order given, and checks each.
   *
   * @param neededBy
   *   who needs them, for messages
   */
  def readSections[A](container: Container, sections: Seq[SectionRef], neededBy: => String)(
      read: SectionBytes => A
  ): Seq[A] = open(container.path, neededBy)(in => sections.map(in.section(_)(read)))

  /** The query's own description, if the query has written state before. */
  def readDescription(): Option[QueryDescription] =
    if (!exists(StateDirectory.Description)) None
    else Some(read(StateDirectory.Description, FileFormat.Kind.Format)(body => QueryDescription.decode(body.bytes)))

  /** Spark's id of the query whose checkpoint this is; empty where the state is in no query's checkpoint. */
  def queryId: String =
    StreamMetadata.read(new Path(new Path(stateRoot).getParent, "metadata"), hadoopConf).fold("")(_.id)

  def writeDescription(d: QueryDescription): Unit =
    write(StateDirectory.Description, FileFormat.Kind.Format, d.encode, Array.emptyByteArray, 0)

  /**
   * Makes sure of the folders `state/<operator>/<partition>`, from which Spark's reader of state takes the number of
   * partitions. Each holds a file: tools that copy checkpoints leave out folders without one.
   *
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CANNOT_WRITE
   */
  def ensurePartitions(operatorId: Long, count: Int): Unit = {
    val operator = operatorFolder(operatorId)
    try {
      val there = partitions(operatorId)
      // They are made in order: where the last has its file, so had all when they were made.
      val isWhole = files.exists(partitionFile(operator, count - 1))
      val missing = (0 until count).filterNot(p => isWhole && there(p))
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

  /** Where Spark keeps what there is of an operator. */
  def operatorFolder(operatorId: Long): Path = new Path(stateRoot, operatorId.toString)

  private def partitionFile(operator: Path, partition: Int) =
    new Path(new Path(operator, partition.toString), StateDirectory.Name)

  private def createPartition(operator: Path, partition: Int): Unit = {
    val file = partitionFile(operator, partition)
    files.mkdirs(file.getParent)
    val out = files.createAtomic(file, overwriteIfPossible = true)
    fill(out)(out.write(StateDirectory.PartitionContent))
  }

  /** Hundreds of them at a time, and nobody reads what is in them. */
  private def createLocally(file: Path): Unit = {
    val at = java.nio.file.Paths.get(file.toUri.getPath)
    java.nio.file.Files.createDirectories(at.getParent)
    java.nio.file.Files.write(at, StateDirectory.PartitionContent)
  }

  /** Full name for messages. */
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
      // Local file systems say the same of a file that may not be read.
      case e: FileNotFoundException if !exists(path) =>
        throw new PenstockException(
          "PENSTOCK_MISSING_FILE",
          s"${name(path)} does not exist, but $neededBy needs it; restore the file, or start the query with a new " +
            "checkpoint location",
          e
        )
      case e: IOException =>
        throw new PenstockException(
          "PENSTOCK_CANNOT_READ",
          s"${name(path)} could not be read, and $neededBy needs it: $e. Nothing is lost as long as the file is there: give " +
            "back the right to read it, or wait until its file system answers, then start the query again.",
          e
        )
    }

  /** File systems differ in how they tell the end of a file, and some keep checksums of their own. */
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

  /** Of the file of a state partition; any will do, but there are tools that leave out empty files. */
  private val PartitionContent = "penstock\n".getBytes(UTF_8)

  /** Partitions that are made at a time where a file system is far away. */
  private val AtOnce = 16

  /** Who needs what is not of some shards only, for messages. */
  private val WholeState = "the state of the query"
}

/**
 * What is fixed for a query's life, in the file FORMAT.
 *
 * @param queryId
 *   Spark's id of the query, empty where there was none
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

  /** @throws io.penstock.state.format.MalformedData where the bytes do not follow the format */
  def decode(body: Array[Byte]): QueryDescription = {
    val in = new ByteSource(body)
    val shardCount = in.getNumber("number of shards", 1L, FileFormat.MaxShards).toInt
    val d = QueryDescription(shardCount, in.getString(), in.getString())
    in.expectEnd("field")
    d
  }
}
