package io.penstock.state.protocol

import io.penstock.state.protocol.Mutation._
import org.scalatest.tags.Slow

/**
 * Checks every history of the commit protocol (docs/PROTOCOL.md, section 7) within small bounds. Each setup covers some
 * rules, and together they cover all.
 */
@Slow
class CommitModelSuite extends ModelSuite {
  import CommitFaults._
  import CommitSetups._

  private val Limit = 200000

  Setups.foreach { setup =>
    test(s"no shard is lost or counted twice, and no needed file is missing: ${setup.name}") {
      assertRight(CommitModel(setup.bounds).search(Limit), setup.states, setup.steps)
    }
  }

  Seq(Tasks, Generations, Cleaning, Rewinding, TwoRuns, Speculation).foreach { setup =>
    test(s"omitting unread parts of states makes no difference: ${setup.name}") {
      val model = CommitModel(setup.bounds)
      val all = model.copy(forgets = false).search(Limit)
      info(s"${all.states.size} states")
      assert(all.wrong.isEmpty)
      assert(all.states.iterator.map(model.withoutUnread).toSet == model.search(Limit).states)
    }
  }

  test("every mutation has an expected trace") {
    assert(Faults.map(_.mutation).distinct == Mutation.All)
  }

  Faults.foreach { fault =>
    test(s"the properties detect ${fault.mutation}: ${fault.in.name}") {
      assertWrong(CommitModel(fault.in.bounds, Some(fault.mutation)).search(Limit), fault.violation, fault.steps)
    }
  }

  test("some rules are not needed while at most one run is alive") {
    for {
      mutation <- Seq(RetainForOneRun, CleanSuperseded, CleanUnnamed, HistoryByNewestGeneration, OffsetsLast)
      setup <- Seq(Tasks, Generations, Cleaning)
    } assert(CommitModel(setup.bounds, Some(mutation)).search(Limit).wrong.isEmpty, s"$mutation, ${setup.name}")
  }
}
