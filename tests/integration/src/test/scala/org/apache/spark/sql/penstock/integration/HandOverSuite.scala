package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.penstock.integration.handover._
import org.apache.spark.sql.penstock.integration.harness._

import io.penstock.SameOnEverySpark
import org.scalatest.funsuite.AnyFunSuite

/**
 * Executors end in an orderly way in the middle of a batch and hand over the state of the open batch, while other
 * executors read the state that the batch started with. `-Dpenstock.test.seeds=50` runs more of them.
 */
@SameOnEverySpark
class HandOverSuite extends AnyFunSuite with LocalCluster {
  private val seeds = sys.props.get("penstock.test.seeds").fold(2)(_.toInt)

  override protected def master: String = LocalCluster.MasterOfTwoCores
  override protected def applicationConf: Map[String, String] =
    super.applicationConf ++ LocalCluster.Speculating ++ Applications.FastFiles

  test("rows are correct if an executor ends between two actions on a batch while tasks run twice") {
    val player = new HandOverPlayer(application, newDirectory("runs"))
    val outcomes = (0 until seeds).map(TestSeed.of("hand-over") + _).map { seed =>
      val run = HandOverRun.of(seed)
      val outcome = player.play(run)
      note(s"$run: ${outcome.difference.fold("equal")(d => s"WRONG: $d")}; ${outcome.how}")
      run -> outcome
    }
    val wrong = outcomes.collect { case (run, HandOverPlayer.Outcome(Some(difference), _)) => s"$run: $difference" }
    assert(
      wrong.isEmpty,
      s"${TestSeed.clue}, ${wrong.size} of $seeds runs differ from plain Spark's:\n${wrong.mkString("\n")}"
    )
    val proving = outcomes.count(_._2.how == ExecutorEnd.WhileAnotherReads)
    info(s"in $proving of $seeds runs another executor read the state meanwhile; only these runs are meaningful")
    // On a busy machine, a few runs may contain no meaningful one.
    assert(seeds < 10 || proving * 2 >= seeds)
  }
}
