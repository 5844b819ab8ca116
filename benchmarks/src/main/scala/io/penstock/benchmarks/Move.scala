package io.penstock.benchmarks

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.concurrent.Executors

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic
import org.apache.spark.sql.penstock.benchmarks.{MovedShard, StoreSetup, StoreShape}

import io.penstock.sidecars.transfer.{ChannelMemories, TransferProcess, TransferSettings}
import io.penstock.state.engine.ShardState
import io.penstock.transport.Transports

/**
 * Measures the time until a shard in the memory of one executor can be read in another's: with each transport, inside
 * one executor, and through the checkpoints of Penstock and of plain Spark's providers, which have no other way. Both
 * transfer sidecars are on this machine.
 */
object Move {
  private val Sizes = Seq("32 KB" -> (32 << 10), "32 MB" -> (32 << 20))
  private val Providers = Seq("HDFS-backed" -> Side.hdfs(1), "RocksDB" -> Side.rocksdb(1))

  def run(spark: SparkSession, args: Arguments, report: Report): Unit = {
    val clock = Executors.newSingleThreadScheduledExecutor()
    val command = Seq(spark.sparkContext.getConf.get("spark.penstock.python"), "-m", "penstock.sidecars.transfer")
    try
      for ((size, bytes) <- Sizes) {
        val shard = new MovedShard(bytes, Files.createTempDirectory(Comparison.checkpoints(args), "move"))
        def timed[A](route: String)(move: => A)(after: A => Unit): Unit = {
          val rounds = args.int("warm-up", 20) + args.int("rounds", 60)
          val took = (0 until rounds).map { _ =>
            val start = System.nanoTime()
            val moved = move
            val ns = System.nanoTime() - start
            after(moved)
            ns
          }
          report.line(
            Map("bench" -> "move", "call" -> s"$size $route"),
            took.drop(args.int("warm-up", 20)).map(ns => Map("ns" -> ns, "movedBytes" -> bytes))
          )
        }
        def measure(route: String)(move: => ShardState): Unit =
          timed(route)(move)(found => require(shard.isWhole(found), s"the shard that moved $route is not complete"))
        measure("inside an executor")(shard.inside())
        for (transport <- Transports.All.map(_.name)) {
          val settings =
            TransferSettings(
              "of the benchmark".getBytes(UTF_8),
              "127.0.0.1",
              transport,
              encrypted = false,
              authenticated = false,
              1
            )
          val pair = Seq.fill(2)(TransferProcess.start(command, settings, shard.source, clock, new ChannelMemories))
          try {
            val to = pair.last.introduction.addresses
            if (to.contains(transport)) measure(s"by $transport")(shard.travel(pair.head, to))
          } finally pair.foreach(_.close())
        }
        for (manager <- FileManager.named("both")) {
          val session = spark.newSession()
          manager.settings.foreach { case (key, value) => session.conf.set(key, value) }
          val read = shard.inCheckpoint(session.asInstanceOf[classic.SparkSession].sessionState.newHadoopConf())
          measure(s"through the checkpoint, ${manager.name} file manager")(read())
        }
        shard.drop()
        for (manager <- FileManager.named("both"); (name, side) <- Providers) {
          val setup = new StoreSetup(
            spark.asInstanceOf[classic.SparkSession],
            side.copy(settings = side.settings ++ manager.settings),
            StoreShape.Whole,
            MovedShard.records(bytes),
            Files.createTempDirectory(Comparison.checkpoints(args), side.name),
            compresses = false
          )
          timed(s"through plain Spark's checkpoint, $name, ${manager.name} file manager")(setup.openElsewhere())(_())
        }
      }
    finally clock.shutdownNow(): Unit
  }
}
