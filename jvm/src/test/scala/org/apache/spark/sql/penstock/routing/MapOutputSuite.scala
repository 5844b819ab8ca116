package org.apache.spark.sql.penstock.routing

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.IndexShuffleBlockResolver
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.penstock.shims.Shuffles
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}

import io.penstock.SameOnEverySpark
import io.penstock.routing.StickyBinder

/** The files that map tasks of a routed exchange write, for few and many rows, under given settings of Spark. */
abstract class MapOutputs(settings: (String, String)*) extends RoutedExchanges {
  override protected def conf: Map[String, String] = super.conf ++ settings
  private val maps = 3

  /** Number of rows for which each map task exceeds its buffer. */
  private val many = maps * 80000

  Seq("few" -> 1000, "many" -> many).foreach { case (name, rows) =>
    test(s"$name rows: all arrive, reported sizes match the files, and files are removed with the shuffle") {
      check(rows, maps, tasks = 2, new StickyBinder())
      val r = routing(2, new StickyBinder())
      val plan = routed(input(rows, maps), r, 2)
      assert(run(plan).size == rows)
      val shuffle = plan.collectFirst { case e: RoutedExchange => e }.get.shuffleDependency.shuffleId
      val files = outputs(shuffle).map { status =>
        val file = resolver.getDataFile(shuffle, status.mapId)
        // Spark reports sizes with an error of up to 10 %.
        val reported = (0 until shards).map(status.getSizeForBlock).sum
        assert(reported >= file.length && reported <= file.length * 1.11 + shards)
        file
      }
      assert(files.size == maps && files.forall(_.length > 0))
      Shuffles.manager(SparkEnv.get).unregisterShuffle(shuffle)
      assert(!files.exists(_.exists()))
    }
  }

  test("without rows there is no data file") {
    val plan = routed(input(0, maps), routing(2, new StickyBinder()), 2)
    assert(run(plan).isEmpty)
    val shuffle = plan.collectFirst { case e: RoutedExchange => e }.get.shuffleDependency.shuffleId
    assert(outputs(shuffle).forall(s => resolver.getDataFile(shuffle, s.mapId).length == 0))
  }

  private def outputs(shuffle: Int): Seq[MapStatus] =
    SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster].shuffleStatuses(shuffle).mapStatuses.toSeq

  private def resolver: IndexShuffleBlockResolver =
    Shuffles.manager(SparkEnv.get).asInstanceOf[SortShuffleManager].shuffleBlockResolver
}

class MapOutputSuite extends MapOutputs() {

  test("few rows keep their order within a shard") {
    val out = run(routed(input(1000, 1), routing(2, new StickyBinder()), 2))
    out.groupBy(_._2).values.foreach(ofShard => assert(ofShard.map(_._3.toLong) == ofShard.map(_._3.toLong).sorted))
  }

  test("a row larger than the buffer is written") {
    val large = spark.range(0, 4, 1, 1).selectExpr("id as k", s"repeat('x', ${3 << 20}) as v")
      .repartition(shards, column("k"))
    val out = run(routed(large, routing(2, new StickyBinder()), 2))
    assert(out.map(_._2).sorted == Seq(0L, 1L, 2L, 3L) && out.forall(_._3.length == 3 << 20))
  }

  test("written rows and bytes are counted") {
    val metrics = new java.util.concurrent.ConcurrentLinkedQueue[(Long, Long)]()
    val listener = new org.apache.spark.scheduler.SparkListener {
      override def onTaskEnd(e: org.apache.spark.scheduler.SparkListenerTaskEnd): Unit = {
        val w = e.taskMetrics.shuffleWriteMetrics
        metrics.add((w.recordsWritten, w.bytesWritten)): Unit
      }
    }
    spark.sparkContext.addSparkListener(listener)
    val plan = routed(input(1000, 3), routing(2, new StickyBinder()), 2)
    assert(run(plan).size == 1000)
    spark.sparkContext.listenerBus.waitUntilEmpty()
    spark.sparkContext.removeSparkListener(listener)
    assert(metrics.asScala.map(_._1).sum == 1000 && metrics.asScala.map(_._2).sum > 0)
    val exchange = plan.collectFirst { case e: RoutedExchange => e }.get
    assert(exchange.metrics("shuffleRecordsWritten").value == 1000 && exchange.metrics("dataSize").value > 0)
  }
}

@SameOnEverySpark
class MapOutputZstdSuite extends MapOutputs("spark.io.compression.codec" -> "zstd")

@SameOnEverySpark
class MapOutputUncompressedSuite
    extends MapOutputs("spark.shuffle.compress" -> "false", "spark.shuffle.checksum.enabled" -> "false")

@SameOnEverySpark
class MapOutputEncryptedSuite extends MapOutputs("spark.io.encryption.enabled" -> "true")
