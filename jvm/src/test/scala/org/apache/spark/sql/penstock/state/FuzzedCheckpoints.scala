package org.apache.spark.sql.penstock.state

import java.nio.file.{Files, Path}
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.{Random, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path => HadoopPath}
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.routing.RoutingVersionLog
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.state.engine.ShardState
import io.penstock.state.format.Damage.Damaged
import io.penstock.state.format._
import io.penstock.{LocalCheckpointFileManager, Seed}
import org.scalatest.{BeforeAndAfterAll, Suite}

/** Checkpoints that a suite damages, and everything that reads them. */
trait FuzzedCheckpoints extends Fuzzing with BeforeAndAfterAll { this: Suite =>
  import FuzzedCheckpoints._
  import WrittenCheckpoint._

  protected val random = new Random(Seed.value)
  private val conf = new StateStoreConf(new SQLConf)
  private val local = hadoop(classOf[Local])

  private def hadoop(files: Class[_]): Configuration = {
    val conf = new Configuration()
    conf.set("spark.sql.streaming.checkpointFileManagerClass", files.getName)
    conf
  }

  /**
   * A way to read a checkpoint.
   *
   * @param rows
   *   Whether the reading decodes rows
   */
  final protected class Reading(val name: String, val rows: Boolean, read: StateDirectory => Any) {

    /** Every reading uses a different root, because executors cache the manifests that they have read. */
    def apply(c: Damageable): Any = {
      runs += 1
      read(new StateDirectory(s"${c.root}/run-$runs/..", c.hadoop))
    }
  }
  private var runs = 0L

  protected def load(d: StateDirectory, store: StoreKey, batch: Long): Any = {
    val manifest = d.readManifest(batch, d.newestGenerations()(batch))
    val out = Map.newBuilder[Int, Contents.Content]
    new ShardLoader(d).load(manifest, store, 0 until Shards)((shard, loaded) => out += shard -> content(loaded.content))
    out.result()
  }

  private def content(shard: ShardState): Contents.Content = {
    val c = Contents.of(shard)
    assert(Contents.rewritten(shard) == c)
    c
  }

  private def feed(d: StateDirectory, store: String, family: (String, KeyStateEncoderSpec), shard: Int): Any = {
    val lists = store == "lists"
    val id = StateStoreId(d.stateRoot, 0, shard, store)
    val families =
      new StoreFamilies(KeySchema, ValueSchema, Families.head._2, true, lists, "unsaferow", None)
    val columnFamily = families.family(family._1, KeySchema, ValueSchema, family._2, lists, isInternal = false)
    val history = new ShardHistory(d, StoreKey(0L, store), shard, Batches)
    val reader = new ShardChangeReader(history, columnFamily, id, 1L, Batches, conf, local)
    reader.map { case (kind, key, value, batch) =>
      (kind, key.getBytes.toSeq, Option(value).map(_.getBytes.toSeq), batch)
    }.toVector
  }

  protected val readings: Seq[Reading] = {
    val stores = StoreNames.map(StoreKey(0L, _))
    val shards = 0 until Shards
    Seq(
      new Reading("the description", false, _.readDescription()),
      new Reading("the routing versions", false, d => new RoutingVersionLog(d, 100).all)
    ) ++
      (0L until Batches).map(b => new Reading(s"manifest $b.0", false, _.readManifest(b, 0L))) ++
      (for (s <- stores; b <- 0L until Batches) yield new Reading(s"$s after batch $b", false, load(_, s, b))) ++
      (for (s <- stores; n <- shards; v <- Seq(2L, Batches))
        yield new Reading(s"$s, shard $n, version $v", false, d => content(new ShardHistory(d, s, n, v).content(v)))) ++
      (for (s <- stores; n <- shards; v <- Seq(0L, 3L))
        yield new Reading(
          s"$s, shard $n, replayed from version $v",
          false,
          d => content(new ShardHistory(d, s, n, Batches).replay(v, Batches))
        )) ++
      (for ((store, families) <- Seq("default" -> Families, "lists" -> ListFamilies); f <- families; n <- shards)
        yield new Reading(s"changes of $store, ${f._1}, shard $n", true, feed(_, store, f, n)))
  }

  /** A checkpoint, the results of all readings, and the readings of each file. */
  final protected class Damageable(val root: Path, val hadoop: Configuration) {
    val directory: Path = root.resolve(StateDirectory.Name)
    val intact: Map[String, Array[Byte]] = Using.resource(Files.walk(directory)) {
      _.iterator().asScala
        .filter(f => Files.isRegularFile(f) && !f.getFileName.toString.startsWith("."))
        .map(f => directory.relativize(f).toString -> Files.readAllBytes(f))
        .toMap
    }
    val paths: Seq[String] = intact.keys.toSeq.sorted
    private val read = readings.map { r =>
      opened.clear()
      val result = r(this)
      (r, result, opened.asScala.toSet)
    }
    val result: Map[Reading, Any] = read.map { case (r, result, _) => r -> result }.toMap
    val readBy: Map[String, IndexedSeq[Reading]] = paths.map { p =>
      p -> read.collect { case (r, _, files) if files(directory.resolve(p).toString) => r }.toIndexedSeq
    }.toMap

    /** Writes a new file, because some file systems wait for the disk when a file is overwritten. */
    def write(path: String, bytes: Array[Byte]): Unit = {
      val file = directory.resolve(path)
      Files.deleteIfExists(file)
      Files.write(file, bytes): Unit
    }

    def restore(path: String): Unit = write(path, intact(path))

    /** Damages a file and reads it with one of the readings that use the file. */
    def withDamaged(
        path: String,
        input: Damaged,
        rows: Boolean = true
    )(judge: (Reading, Fuzzing.Outcome[Any]) => Unit): Unit = {
      val able = if (rows) readBy(path) else readBy(path).filterNot(_.rows)
      if (able.nonEmpty) {
        val reading = able(random.nextInt(able.size))
        fuzz(s"$path, for ${reading.name}", input) { bytes =>
          write(path, bytes)
          reading(this)
        }(judge(reading, _))
      }
    }
  }

  protected def written(seed: Long, files: Class[_] = classOf[Local]): Damageable = {
    val scratch = Files.createTempDirectory("penstock-fuzz")
    directories += scratch
    val root = scratch.resolve("state")
    val conf = hadoop(files)
    new WrittenCheckpoint(root, conf, seed)
    new Damageable(root, conf)
  }

  private val directories = mutable.ArrayBuffer.empty[Path]

  override protected def afterAll(): Unit =
    directories.foreach(d => org.apache.commons.io.FileUtils.deleteDirectory(d.toFile))
}

object FuzzedCheckpoints {

  /** Paths of the files that were opened. */
  private val opened = ConcurrentHashMap.newKeySet[String]()

  final class Local(path: HadoopPath, conf: Configuration) extends LocalCheckpointFileManager(path, conf) {
    override def open(path: HadoopPath): FSDataInputStream = {
      opened.add(path.toUri.getPath): Unit
      super.open(path)
    }
  }

  /** Spark's default file manager. */
  final class Default(path: HadoopPath, conf: Configuration) extends FileContextBasedCheckpointFileManager(path, conf) {
    override def open(path: HadoopPath): FSDataInputStream = {
      opened.add(path.toUri.getPath): Unit
      super.open(path)
    }
  }
}
