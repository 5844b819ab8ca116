package org.apache.spark.sql.penstock.integration

import org.apache.commons.io.FileUtils
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/**
 * As [[SamePathSuite]], with executors that read state from the checkpoint in every batch: the binding is random, and
 * no state is sent between executors.
 */
@SameOnEverySpark
class SamePathClusterSuite extends AnyFunSuite with LocalCluster {
  private val batches = 4
  private val lives = Seq.tabulate(3)(life =>
    CountAtPath.inputs(TestSeed.of(s"life $life"), firstKey = life * 10L, batches)
  )

  override protected def applicationConf: Map[String, String] =
    super.applicationConf ++ Applications.FastFiles + ("spark.penstock.transport" -> "off")

  private def newQuery() = new CountAtPath(application, newDirectory("parent").resolve("checkpoint"))

  /** Another binding in every batch of every life of the checkpoint. */
  private def engine(life: Int): Engine = {
    val chaos = s"chaos(${(TestSeed.of("same path on a cluster") + life) & 0xffff})"
    Engine.penstock(shards = 32, policy = "static")
      .copy(queryOptions = _ => Map("penstock.policy" -> chaos, "penstock.tasks" -> "4"))
  }

  test("a checkpoint is deleted and started again several times")(withClue(TestSeed.clue) {
    val query = newQuery()
    lives.zipWithIndex.foreach { case (inputs, life) =>
      assert(query.run(engine(life), inputs) == CountAtPath.expected(inputs), s"life $life")
      FileUtils.deleteDirectory(query.checkpoint.toFile)
    }
  })

  test("an older copy of a checkpoint is restored several times")(withClue(TestSeed.clue) {
    val query = newQuery()
    val copy = query.checkpoint.resolveSibling("copy")
    val first = lives.head.take(1)
    query.run(engine(0), first)
    FileUtils.copyDirectory(query.checkpoint.toFile, copy.toFile)
    lives.zipWithIndex.foreach { case (inputs, life) =>
      val changed = first ++ inputs.drop(1)
      assert(query.run(engine(life), changed, done = 1) == CountAtPath.expected(changed) - 0L, s"life $life")
      FileUtils.deleteDirectory(query.checkpoint.toFile)
      FileUtils.copyDirectory(copy.toFile, query.checkpoint.toFile)
    }
  })
}
