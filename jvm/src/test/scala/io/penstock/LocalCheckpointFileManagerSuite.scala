package io.penstock

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{Files, Path => NioPath, Paths}
import java.util.concurrent.{Callable, CyclicBarrier, Executors}

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CheckpointFileManager,
  FileContextBasedCheckpointFileManager
}

import io.penstock.conf.Settings
import io.penstock.errors.PenstockException
import jdk.jfr.Recording
import jdk.jfr.consumer.RecordingFile
import org.scalatest.funsuite.AnyFunSuite

/** The contract of Spark's own CheckpointFileManagerSuite, and the guarantees that Penstock adds to it. */
class LocalCheckpointFileManagerSuite extends AnyFunSuite {
  private def withDirectory(body: Path => Unit): Unit = {
    val directory = Files.createTempDirectory("penstock-cfm")
    try body(new Path(directory.toString))
    finally newManager(new Path(directory.toString)).delete(new Path(directory.toString))
  }

  private def newManager(path: Path, conf: (String, String)*): LocalCheckpointFileManager = {
    val hadoop = new Configuration()
    conf.foreach { case (k, v) => hadoop.set(k, v) }
    new LocalCheckpointFileManager(path, hadoop)
  }

  private def write(fm: CheckpointFileManager, path: Path, value: Int, overwrite: Boolean = false): Unit = {
    val out = fm.createAtomic(path, overwrite)
    out.writeInt(value)
    out.close()
  }

  private def read(fm: CheckpointFileManager, path: Path): Int = Using.resource(fm.open(path))(_.readInt())

  private def names(path: Path): Set[String] =
    Using.resource(Files.list(Paths.get(path.toString)))(_.iterator().asScala.map(_.getFileName.toString).toSet)

  test("mkdirs, list, createAtomic, open, delete and exists follow Spark's contract") {
    withDirectory { base =>
      val fm = newManager(base)
      val dir = new Path(base, "dir/subdir/subsubdir")
      assert(!fm.exists(dir))
      fm.mkdirs(dir)
      assert(fm.exists(dir))
      fm.mkdirs(dir)

      val none = new PathFilter { override def accept(p: Path): Boolean = false }
      assert(fm.list(base).map(_.getPath.getName).toSeq == Seq("dir") && fm.list(base).head.isDirectory)
      assert(fm.list(base, none).isEmpty)

      val file = new Path(dir, "file")
      val cancelled = fm.createAtomic(file, overwriteIfPossible = false)
      cancelled.writeInt(1)
      cancelled.cancel()
      assert(!fm.exists(file))
      write(fm, file, 2)
      assert(read(fm, file) == 2)
      intercept[FileAlreadyExistsException](write(fm, file, 3))
      assert(read(fm, file) == 2)

      val again = new Path(dir, "file2")
      write(fm, again, 5, overwrite = true)
      write(fm, again, 6, overwrite = true)
      assert(read(fm, again) == 6)
      assert(names(dir) == Set("file", "file2"), "temporary files are left")

      fm.delete(file)
      assert(!fm.exists(file))
      intercept[IOException](fm.open(file))
      fm.delete(file)
      fm.delete(base)
      assert(!fm.exists(base))
      fm.close()
    }
  }

  test("a file becomes visible on close; close and cancel may be repeated and mixed") {
    withDirectory { base =>
      val fm = newManager(base)
      val file = new Path(base, "file")
      val out = fm.createAtomic(file, overwriteIfPossible = true)
      out.writeInt(1)
      out.flush()
      assert(!fm.exists(file))
      out.close()
      out.close()
      out.cancel()
      assert(read(fm, file) == 1)
      val dropped = fm.createAtomic(file, overwriteIfPossible = true)
      dropped.writeInt(2)
      dropped.cancel()
      dropped.close()
      assert(read(fm, file) == 1 && names(base) == Set("file"))
    }
  }

  test("exactly one of many concurrent exclusive creations wins, and its content is kept") {
    withDirectory { base =>
      val fm = newManager(base)
      val threads = 8
      val pool = Executors.newFixedThreadPool(threads)
      try {
        (1 to 25).foreach { round =>
          val file = new Path(base, s"file$round")
          val barrier = new CyclicBarrier(threads)
          val results = pool.invokeAll((1 to threads).map { i =>
            new Callable[(Int, Try[Unit])] {
              override def call(): (Int, Try[Unit]) = {
                val out = fm.createAtomic(file, overwriteIfPossible = false)
                out.writeInt(i)
                barrier.await()
                i -> Try(out.close())
              }
            }
          }.asJava).asScala.map(_.get())
          val winners = results.collect { case (i, Success(())) => i }
          assert(winners.size == 1)
          assert(results.collect { case (_, Failure(e)) => e }.forall(_.isInstanceOf[FileAlreadyExistsException]))
          assert(read(fm, file) == winners.head)
        }
        assert(names(base).size == 25, "temporary files are left")
      } finally pool.shutdown()
    }
  }

  test("concurrent overwrites leave one complete file") {
    withDirectory { base =>
      val fm = newManager(base)
      val file = new Path(base, "file")
      val pool = Executors.newFixedThreadPool(4)
      try {
        pool.invokeAll((1 to 40).map { i =>
          new Callable[Unit] { override def call(): Unit = write(fm, file, i, overwrite = true) }
        }.asJava).forEach(f => f.get())
        assert((1 to 40).contains(read(fm, file)) && names(base) == Set("file"))
      } finally pool.shutdown()
    }
  }

  test("list returns a file itself, fails for a missing path and hides checksum files") {
    withDirectory { base =>
      val fm = newManager(base)
      val file = new Path(base, "file")
      write(fm, file, 1)
      Files.write(Paths.get(base.toString, ".file.crc"), Array[Byte](1))
      val listed = fm.list(base)
      assert(listed.map(_.getPath.getName).toSeq == Seq("file") && listed.head.getLen == 4 && listed.head.isFile)
      assert(listed.head.getPath.toUri.getScheme == "file" && listed.head.getModificationTime > 0)
      assert(fm.list(file).map(_.getPath.getName).toSeq == Seq("file"))
      intercept[FileNotFoundException](fm.list(new Path(base, "missing")))
    }
  }

  test("creating a file in a missing directory fails") {
    withDirectory { base =>
      intercept[FileNotFoundException](newManager(base).createAtomic(new Path(base, "no/file"), true))
    }
  }

  test("an open file can seek, read at positions and report its length") {
    withDirectory { base =>
      val fm = newManager(base)
      val file = new Path(base, "file")
      val out = fm.createAtomic(file, overwriteIfPossible = false)
      (0 until 100000).foreach(out.writeInt(_))
      assert(out.getPos == 400000L)
      out.close()
      Using.resource(fm.open(file)) { in =>
        in.seek(4 * 70000)
        assert(in.readInt() == 70000)
        val bytes = new Array[Byte](4)
        in.readFully(4L * 3, bytes)
        assert(BigInt(bytes) == 3 && in.readInt() == 70001)
      }
    }
  }

  test("files are interchangeable with those of Spark's default manager, including stale checksums") {
    withDirectory { base =>
      val ours = newManager(base)
      val spark = new FileContextBasedCheckpointFileManager(base, new Configuration())
      val file = new Path(base, "file")
      write(spark, file, 1)
      assert(read(ours, file) == 1)
      // Checksum file that a writer with checksums leaves beside the file.
      val fs = base.getFileSystem(new Configuration())
      Using.resource(fs.create(file, true))(_.writeInt(2))
      assert(names(base).contains(".file.crc"))
      write(ours, file, 3, overwrite = true)
      assert(read(spark, file) == 3)
      Using.resource(fs.create(file, true))(_.writeInt(4))
      ours.delete(file)
      assert(names(base).isEmpty)
    }
  }

  test("names may contain spaces, colon-like characters and non-ASCII characters") {
    withDirectory { base =>
      val fm = newManager(base)
      Seq("a b", "100%", "naïve-éü", "x=1&y", "#1").foreach { name =>
        val file = new Path(base, name)
        write(fm, file, 7)
        assert(read(fm, file) == 7 && fm.list(base).exists(_.getPath == new Path("file", null, file.toString)), name)
        fm.delete(file)
      }
    }
  }

  test("links to directories are usable as checkpoints and are not followed on delete") {
    withDirectory { base =>
      val fm = newManager(base)
      val real = new Path(base, "real")
      fm.mkdirs(real)
      write(fm, new Path(real, "file"), 1)
      val link: NioPath = Files.createSymbolicLink(Paths.get(base.toString, "link"), Paths.get(real.toString))
      fm.mkdirs(new Path(link.toString))
      assert(read(fm, new Path(link.toString, "file")) == 1)
      fm.delete(new Path(link.toString))
      assert(!Files.exists(link) && fm.exists(new Path(real, "file")))
    }
  }

  test("createCheckpointDirectory creates the directory and returns its qualified path") {
    withDirectory { base =>
      val fm = newManager(new Path(base, "checkpoint"))
      assert(fm.createCheckpointDirectory() == new Path("file", null, s"$base/checkpoint"))
      assert(fm.exists(new Path(base, "checkpoint")) && fm.isLocal)
    }
  }

  test("fsync does not change the content of files") {
    withDirectory { base =>
      val fm = newManager(base, Settings.CheckpointFsync.key -> "true")
      write(fm, new Path(base, "file"), 1)
      write(fm, new Path(base, "file"), 2, overwrite = true)
      assert(read(fm, new Path(base, "file")) == 2)
      assert(intercept[PenstockException](newManager(base, Settings.CheckpointFsync.key -> "maybe")).errorClass ==
        "PENSTOCK_INVALID_SETTING")
    }
  }

  test("a path on another file system is rejected") {
    def refused(body: => Any): Unit =
      assert(intercept[PenstockException](body).errorClass == "PENSTOCK_NOT_A_LOCAL_PATH")
    refused(newManager(new Path("hdfs://namenode/checkpoint")))
    refused(newManager(new Path("/checkpoint"), "fs.defaultFS" -> "hdfs://namenode"))
    withDirectory(base => refused(newManager(base).exists(new Path("s3a://bucket/file"))))
    withDirectory(base => assert(newManager(new Path(s"file:$base")).exists(base)))
  }

  test("no operation starts a child process; Spark's default manager starts some") {
    def everything(fm: CheckpointFileManager, base: Path): Unit = {
      val directory = new Path(base, "directory")
      fm.mkdirs(directory)
      val file = new Path(directory, "file")
      write(fm, file, 1)
      write(fm, file, 2, overwrite = true)
      fm.createAtomic(file, overwriteIfPossible = true).cancel()
      assert(read(fm, file) == 2 && fm.exists(file) && fm.list(directory).length == 1)
      fm.delete(file)
      fm.delete(directory)
    }
    withDirectory { base =>
      assert(processesStarted(everything(newManager(base), base)) == 0)
      assert(processesStarted(everything(
        new FileContextBasedCheckpointFileManager(base, new Configuration()),
        base
      )) > 0)
    }
  }

  /** Counts the child processes that this JVM starts while `body` runs, as recorded by Java Flight Recorder. */
  private def processesStarted(body: => Unit): Int = Using.resource(new Recording()) { recording =>
    recording.enable("jdk.ProcessStart").withoutThreshold()
    recording.start()
    body
    recording.stop()
    val file = Files.createTempFile("penstock-processes", ".jfr")
    try {
      recording.dump(file)
      RecordingFile.readAllEvents(file).asScala.count(_.getEventType.getName == "jdk.ProcessStart")
    } finally Files.delete(file)
  }

  test("Spark loads the manager by its class name") {
    withDirectory { base =>
      val conf = new Configuration()
      conf.set("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")
      assert(CheckpointFileManager.create(base, conf).isInstanceOf[LocalCheckpointFileManager])
    }
  }
}
