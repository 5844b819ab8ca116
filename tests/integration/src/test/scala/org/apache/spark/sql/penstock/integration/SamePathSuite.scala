package org.apache.spark.sql.penstock.integration

import java.nio.file.Path

import org.apache.commons.io.FileUtils
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/**
 * A checkpoint is deleted or restored from a copy while the application continues, as in a notebook. Content in memory
 * that belongs to the earlier checkpoint at the path must not be used.
 */
@SameOnEverySpark
class SamePathSuite extends AnyFunSuite with PenstockApplication {
  private val batches = 3
  private val one = CountAtPath.inputs(TestSeed.of("one life"), firstKey = 0L, batches)

  /** Some keys are the same, and most values differ. */
  private val other = CountAtPath.inputs(TestSeed.of("other life"), firstKey = 15L, batches)

  private def engine(shards: Int, inlineBytes: Long): Engine = {
    val engine = Engine.penstock(shards, seed = TestSeed.of("same path"))
    engine.copy(conf = engine.conf + ("spark.penstock.state.inlineBytes" -> inlineBytes.toString))
  }

  private def newQuery() = new CountAtPath(application, newDirectory("parent").resolve("checkpoint"))

  private def delete(checkpoint: Path): Unit = FileUtils.deleteDirectory(checkpoint.toFile)

  /** Checks the batches' answers, and the state after each batch as Spark's state reader shows it. */
  private def assertIs(query: CountAtPath, answers: Map[Long, Seq[String]], inputs: Seq[Seq[Event]]): Unit = {
    val expected = CountAtPath.expected(inputs)
    assert(answers.nonEmpty && answers == expected.filter(batch => answers.contains(batch._1)))
    expected.toSeq.sortBy(_._1).foreach { case (batch, rows) =>
      assert(query.stateAfter(batch) == rows, s"batch $batch")
    }
  }

  Seq("in manifests" -> 4194304L, "in files of their own" -> 0L).foreach { case (where, inlineBytes) =>
    test(s"a checkpoint deleted and started again is read anew, changes $where")(withClue(TestSeed.clue) {
      val query = newQuery()
      assertIs(query, query.run(engine(8, inlineBytes), one), one)
      delete(query.checkpoint)
      assertIs(query, query.run(engine(8, inlineBytes), other), other)
    })

    test(s"an older copy of a checkpoint that is restored is read anew, changes $where")(withClue(TestSeed.clue) {
      val query = newQuery()
      val copy = query.checkpoint.resolveSibling("copy")
      query.run(engine(8, inlineBytes), one.take(1))
      FileUtils.copyDirectory(query.checkpoint.toFile, copy.toFile)
      assertIs(query, query.run(engine(8, inlineBytes), one, done = 1), one)
      delete(query.checkpoint)
      FileUtils.copyDirectory(copy.toFile, query.checkpoint.toFile)
      val changed = one.take(1) ++ other.drop(1)
      assertIs(query, query.run(engine(8, inlineBytes), changed, done = 1), changed)
    })
  }

  test("a query may have thousands of shards where an earlier one had four")(withClue(TestSeed.clue) {
    val query = newQuery()
    assert(query.run(engine(4, inlineBytes = 4194304L), one.take(2)) == CountAtPath.expected(one.take(2)))
    delete(query.checkpoint)
    assert(query.run(engine(2000, inlineBytes = 4194304L), other.take(2)) == CountAtPath.expected(other.take(2)))
  })
}
