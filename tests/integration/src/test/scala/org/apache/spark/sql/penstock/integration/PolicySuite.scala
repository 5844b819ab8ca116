package org.apache.spark.sql.penstock.integration

import org.apache.spark.sql.catalyst.expressions.Murmur3HashFunction
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.penstock.integration.harness._
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode, StreamingQuery}
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.{Encoders, Row, classic}

import io.penstock.SameOnEverySpark
import io.penstock.routing.PublishedPolicy
import org.scalatest.funsuite.AnyFunSuite

/** Runs the policies that plan between batches with the real sidecar: those of the papers, and pinned keys. */
@SameOnEverySpark
class PolicySuite extends AnyFunSuite with OneApplicationAtATime {
  private val PatienceNs = 120000000000L

  /** One key has half as many rows as all others together. */
  private val rows = (1L to 40L) ++ Seq.fill(19)(7L)

  /** A query that counts rows and takes two milliseconds for each. */
  private class Running(session: classic.SparkSession, options: Map[String, String]) {
    private val source = MemoryStream[Long](Encoders.scalaLong, session)
    private var counts = Map.empty[Long, Long].withDefaultValue(0L)
    val query: StreamingQuery = source.toDS().groupByKey(n => n)(Encoders.scalaLong)
      .flatMapGroupsWithState(OutputMode.Update, GroupStateTimeout.NoTimeout)(PolicySuite.count)(
        Encoders.scalaLong,
        Encoders.tuple(Encoders.scalaLong, Encoders.scalaLong)
      )
      .writeStream.outputMode("update").options(options)
      .option("checkpointLocation", newDirectory("checkpoint").toString)
      .foreachBatch((answer: org.apache.spark.sql.Dataset[(Long, Long)], _: Long) => last = answer.collect().toMap)
      .start()
    @volatile private var last = Map.empty[Long, Long]

    /** Runs a batch, whose answer must be right, and returns the report of its region. */
    def batch(rows: Seq[Long] = rows): Row = {
      source.addData(rows)
      query.processAllAvailable()
      val seen = rows.groupBy(identity).map { case (key, same) => key -> (counts(key) + same.size) }
      counts ++= seen
      assert(last == seen)
      ReportedRegion.withState(query.recentProgress.toSeq).last.observedMetrics.get("penstock").getSeq[Row](4).head
    }

    /** Runs batches until the report of one satisfies `isWanted`. */
    def batchUntil(wanted: String, rows: Seq[Long] = rows)(isWanted: Row => Boolean): Row = {
      val until = System.nanoTime() + PatienceNs
      Iterator.continually(batch(rows)).find { region =>
        assert(System.nanoTime() < until, s"no batch $wanted; the last one: $region")
        isWanted(region)
      }.get
    }
  }

  private def decision(region: Row): String = region.getAs[String]("decision")

  private def pinned(region: Row): Int = region.getAs[Int]("pinned")

  /** Imbalance by rows, which are the same in every batch and take equally long. */
  private def imbalance(region: Row): Double = region.getAs[Double]("imbalance")

  private def running(options: (String, String)*)(body: Running => Unit): Unit = {
    val session = application(Applications.Plugin ++ Map(
      "spark.penstock.python" -> CommandLine.python.toString,
      "spark.penstock.shards" -> "16"
    ))
    val running = new Running(session, options.toMap)
    try body(running)
    finally running.query.stop()
  }

  PublishedPolicy.all.foreach { policy =>
    test(s"$policy: shards are placed by the load of the batch before") {
      running("penstock.policy" -> policy.toString) { running =>
        val first = running.batch()
        assert(decision(first).startsWith(s"${policy.toString} has no plan (nothing measured yet): shards stay"))
        assert(imbalance(first) > 1.25, "by shard id, the key with many rows makes its task busy")
        // On a busy machine, the measured times of some batches hardly depend on their rows.
        running.batchUntil("that a plan has balanced") { region =>
          decision(region).startsWith(s"${policy.toString}, by batch ") && imbalance(region) < imbalance(first) - 0.15
        }
      }
    }
  }

  test("observe: the policy's plan is reported but not applied") {
    running("penstock.policy" -> "refine", "penstock.mode" -> "observe") { running =>
      val first = running.batch()
      val planned = running.batchUntil("that a plan would balance")(imbalance(_) < imbalance(first) - 0.15)
      assert(decision(planned).startsWith("refine, by batch ") && decision(planned).contains("observe: "))
    }
  }

  /** Two keys of one shard, and others. */
  private val (together, others) = {
    def shard(key: Long) = Math.floorMod(Murmur3HashFunction.hash(key, LongType, 42L).toInt, 16)
    val same = (1L to 100L).filter(shard(_) == shard(1L)).take(2)
    (same, (1L to 100L).diff(same).take(40))
  }
  private val hot = others ++ Seq.fill(50)(together).flatten

  test("hybrid: keys of an overloaded shard are pinned, and unpinned when they are light again") {
    running("penstock.tasks" -> "2") { running =>
      val first = running.batch(hot)
      assert(imbalance(first) > 1.3 && pinned(first) == 0, decision(first))
      // One pinned key is enough. On a busy machine, where times hardly depend on rows, the second key may be pinned as
      // well, and unpinning it would gain nothing.
      def isParted(region: Row) = Seq(1, 2).contains(pinned(region))
      running.batchUntil("that pinned keys balance", hot)(r => isParted(r) && imbalance(r) < 1.1)
      running.batchUntil("without pinned keys", others ++ together)(pinned(_) == 0)
      running.batchUntil("with pinned keys again", hot)(isParted)
    }
  }

  test("hybrid, observe: keys that would be pinned are reported but not pinned") {
    running("penstock.tasks" -> "2", "penstock.mode" -> "observe") { running =>
      val region = running.batchUntil("that tells of a key", hot)(decision(_).endsWith("; 1 keys would be pinned"))
      assert(decision(region).contains("observe: ") && pinned(region) == 0)
    }
  }

  test("hybrid: no key is pinned if none may be") {
    running("penstock.tasks" -> "2", "penstock.pinned.max" -> "0") { running =>
      val all = Seq.fill(5)(running.batch(hot))
      assert(all.forall(r => pinned(r) == 0 && !decision(r).contains("pinned")), all.map(decision))
    }
  }

  test("shards are placed on the planned number of tasks") {
    running("penstock.policy" -> "mixed", "penstock.tasks" -> "auto") { running =>
      val planned = running.batchUntil("with a plan")(decision(_).startsWith("mixed, by batch "))
      assert(Seq(1, 2).contains(planned.getAs[Int]("tasks")))
    }
  }
}

object PolicySuite {
  private val RowMs = 2L

  /** A function value, so that it is serialized without the query that uses it. */
  private val count: (Long, Iterator[Long], GroupState[Long]) => Iterator[(Long, Long)] = (key, rows, state) => {
    val seen = rows.map { row => Thread.sleep(RowMs); row }.size
    state.update(state.getOption.getOrElse(0L) + seen)
    Iterator(key -> state.get)
  }
}
