package org.apache.spark.sql.penstock.commit

import java.nio.file.{Files, Path}
import java.util.concurrent.LinkedBlockingQueue

import org.scalatest.funsuite.AnyFunSuite

/** The file of a manifest is created while its batch runs. */
class ManifestAheadSuite extends AnyFunSuite with QueryRuns {

  /** Files that do not have their final name yet. */
  private def unfinished(root: String): Seq[String] = {
    val folder = Path.of(root, "_penstock", "manifests")
    if (Files.exists(folder)) folder.toFile.list.toSeq.filter(_.endsWith(".tmp")) else Nil
  }

  test("the file exists before any task has committed, and becomes the manifest") {
    val c = commits(root())
    open(c, 0)
    val created = unfinished(c.stateRoot)
    assert(created.size == 1 && created.head.startsWith(".0.0.") && manifests(c.stateRoot).isEmpty)
    open(c, 0)
    assert(unfinished(c.stateRoot) == created)
    commit(c, 0, 0 until 4, "a")
    assert(unfinished(c.stateRoot).isEmpty && manifests(c.stateRoot) == Seq("0.0"))
    // A second action on the batch gets another manifest.
    commit(c, 0, 0 until 4, "b")
    assert(unfinished(c.stateRoot).isEmpty && manifests(c.stateRoot) == Seq("0.0", "0.1"))
    assert(content(c.stateRoot, 0)(1) == Map("k0" -> "b-1"))
  }

  test("a batch that is not committed leaves no file, however it ends") {
    val at = root()
    val first = commits(at)
    open(first, 0)
    first.ended()
    assert(unfinished(at).isEmpty && manifests(at).isEmpty)
    val c = commits(at)
    open(c, 0)
    commit(c, 0, 0 until 4, "a")
    open(c, 1)
    commit(c, 1, Seq(0, 1), "b")
    c.ended()
    assert(unfinished(at).isEmpty && manifests(at) == Seq("0.0"))
  }

  test("if the file cannot be created or filled, the manifest is written to another file") {
    val at = root()
    val faults = Seq("create manifests/0 fail", "publish manifests/1 fail", "published manifests/2 fail")
    val c = commits(at, faults = faults)
    (0L to 3L).foreach { batch =>
      open(c, batch)
      commit(c, batch, 0 until 4, s"v$batch")
    }
    assert(manifests(at) == (0 to 3).map(b => s"$b.0") && unfinished(at).isEmpty)
    assert(content(at, 3)(2) == (0 to 3).map(b => s"k$b" -> s"v$b-2").toMap)
  }

  test("only the manifest's writer waits for the file, and creates it if creation has not begun") {
    val queued = new LinkedBlockingQueue[Runnable]()
    val c = commits(root(), writers = queued.put(_))
    open(c, 0)
    val creation = queued.take()
    commit(c, 0, Seq(0, 1), "a")
    assert(unfinished(c.stateRoot).isEmpty && queued.isEmpty)
    var answered = false
    c.committed(message(c, 0, Seq(2, 3), "b", inline = true, Commits.attempt()))(o => answered = o.isSuccess)
    queued.take().run()
    creation.run()
    assert(answered && manifests(c.stateRoot) == Seq("0.0") && unfinished(c.stateRoot).isEmpty)
  }
}
