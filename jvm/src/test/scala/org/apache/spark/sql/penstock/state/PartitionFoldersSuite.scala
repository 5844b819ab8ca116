package org.apache.spark.sql.penstock.state

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.spark.sql.penstock.storage.StateDirectory

import io.penstock.LocalCheckpointFileManager
import io.penstock.errors.PenstockException
import io.penstock.faults.{Fault, FaultPlan, FaultyCheckpointFileManager}
import org.scalatest.funsuite.AnyFunSuite

/** A remote file system, according to its file manager. */
class FarFileManager(path: HadoopPath, conf: Configuration) extends FaultyCheckpointFileManager(path, conf) {
  override def isLocal: Boolean = false
}

/** Folders of state partitions, on local and remote file systems. */
class PartitionFoldersSuite extends AnyFunSuite {
  private val count = 40

  private def conf(manager: Class[_], faults: String*): Configuration = {
    val conf = new Configuration(false)
    conf.set(FaultyCheckpointFileManager.ClassKey, manager.getName)
    conf.set(FaultyCheckpointFileManager.DelegateKey, classOf[LocalCheckpointFileManager].getName)
    FaultPlan.settings(faults.map(Fault.parse), Files.createTempDirectory("penstock-strikes")).foreach { case (k, v) =>
      conf.set(k, v)
    }
    conf
  }

  private def complete(root: Path): Boolean =
    (0 until count).forall(p => Files.size(root.resolve(s"0/$p/_penstock")) > 0)

  for (manager <- Seq(classOf[LocalCheckpointFileManager], classOf[FarFileManager])) {
    test(s"${manager.getSimpleName}: folders that a copy has lost are restored, others stay unchanged") {
      val root = Files.createTempDirectory("penstock-partitions")
      def ensure(): Unit = new StateDirectory(root.toUri.toString, conf(manager)).ensurePartitions(0L, count)
      ensure()
      assert(complete(root))
      val kept = root.resolve("0/3/_penstock")
      Files.writeString(kept, "as it was")
      for (lost <- Seq(5, 7)) {
        Files.delete(root.resolve(s"0/$lost/_penstock"))
        Files.delete(root.resolve(s"0/$lost"))
      }
      ensure()
      assert(complete(root) && Files.readString(kept) == "as it was")
      // Folders without files, as 0.1.0 wrote them.
      (0 until count).foreach(p => Files.delete(root.resolve(s"0/$p/_penstock")))
      ensure()
      assert(complete(root))
    }
  }

  test("a failure to create a folder is reported, and the next call creates it") {
    val root = Files.createTempDirectory("penstock-partitions")
    def ensure(faults: String*): Unit =
      new StateDirectory(root.toUri.toString, conf(classOf[FarFileManager], faults: _*)).ensurePartitions(0L, count)
    val error = intercept[PenstockException](ensure("publish 11/* fail"))
    assert(error.errorClass == "PENSTOCK_CANNOT_WRITE" && error.detail.contains(s"${root.toUri.getPath}0"))
    ensure()
    assert(complete(root))
  }
}
