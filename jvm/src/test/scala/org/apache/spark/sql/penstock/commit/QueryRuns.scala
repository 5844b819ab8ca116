package org.apache.spark.sql.penstock.commit

import java.nio.file.{Files, Path}
import java.util.UUID
import java.util.concurrent.Executor

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.lease._
import org.apache.spark.sql.penstock.state.ShardLoader
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.unsafe.Platform

import io.penstock.faults.{Fault, FaultPlan, FaultyCheckpointFileManager}
import io.penstock.sharding.Layout
import io.penstock.state.engine.KeyBytes
import io.penstock.state.format._
import io.penstock.telemetry.StateLoad

/** Runs of a query with one store, on real files. Tests commit in place of tasks and background writers. */
trait QueryRuns {
  protected val shardCount = 4
  protected val store = StoreKey(0L, "default")
  protected val region = RegionSpec(0L, single = false, Seq(OperatorLease(0L, OperatorKind.WholeKey, Seq("default"))))
  protected val hadoop = new Configuration()
  hadoop.set("spark.sql.streaming.checkpointFileManagerClass", "io.penstock.LocalCheckpointFileManager")

  protected def root(): String = Files.createTempDirectory("penstock-commit").resolve("state").toString
  protected def commits(
      root: String,
      shards: Int = shardCount,
      faults: Seq[String] = Nil,
      minBatches: Int = 100,
      attempts: AttemptStates = new Commits.States,
      writers: Executor = _.run()
  ) = {
    val conf = new Configuration(hadoop)
    conf.setInt("spark.sql.streaming.minBatchesToRetain", minBatches)
    if (faults.nonEmpty) {
      conf.set(FaultyCheckpointFileManager.DelegateKey, conf.get(FaultyCheckpointFileManager.ClassKey))
      conf.set(FaultyCheckpointFileManager.ClassKey, classOf[FaultyCheckpointFileManager].getName)
      FaultPlan.settings(faults.map(Fault.parse), Files.createTempDirectory("penstock-strikes")).foreach {
        case (key, value) => conf.set(key, value)
      }
    }
    new QueryCommits(UUID.randomUUID(), root, shards, conf, attempts = attempts, writers = writers)
  }
  protected def open(c: QueryCommits, batch: Long, layout: Layout = Layout(shardCount)): RegionLease =
    c.open(BatchSpec(c.runId, c.stateRoot, batch, shardCount, Seq(region)))(Map(0L -> layout))(0L)

  /** The key that a batch writes. */
  protected def keyOf(batch: Long): String = s"k$batch"

  /** Commits an attempt that writes one key to each of its shards, inline or in its own changelog. */
  protected def commit(
      c: QueryCommits,
      batch: Long,
      shards: Seq[Int],
      text: String,
      inline: Boolean = true,
      attempt: TaskAttempt = Commits.attempt()
  ): UUID = {
    val m = message(c, batch, shards, text, inline, attempt)
    Commits.commit(c, m)
    m.lineage
  }

  /** Runs batches in which one attempt commits all shards; `text` names a batch's values. */
  protected def runBatches(c: QueryCommits, batches: Seq[Long], inline: Boolean = true)(text: Long => String): Unit =
    batches.foreach { batch =>
      open(c, batch)
      commit(c, batch, 0 until shardCount, text(batch), inline)
    }

  protected def message(
      c: QueryCommits,
      batch: Long,
      shards: Seq[Int],
      text: String,
      inline: Boolean,
      attempt: TaskAttempt
  ): TaskCommitted = {
    val lineage = UUID.randomUUID()
    val out = new ByteSink
    val w = new ChangeSet.Writer(out)
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    val sections = shards.map { s =>
      val start = out.size
      w.family("default", FamilyTraits(ordered = false, multiValued = false))
      val k = keyOf(batch).getBytes
      val v = s"$text-$s".getBytes
      w.put(k, at, k.length, v, at, v.length)
      val n = w.finish()
      Section(store, s, start, n, FileFormat.crc(out.array, start, n))
    }
    val payloadAt =
      if (inline) 0L
      else {
        val body = SectionTable.encode(sections)
        new StateDirectory(c.stateRoot, hadoop).write(
          Container.Changelog(batch, lineage).path,
          FileFormat.Kind.Changelog,
          body,
          out.array,
          out.size
        )
        FileFormat.HeaderBytes.toLong + body.length
      }
    val bytes = shards.map(_ => text.length.toLong).toArray
    val loads = StateLoad(bytes, bytes.map(_ * 10), bytes.map(_ * 100))
    TaskCommitted(
      c.runId,
      batch,
      attempt,
      s"executor_h_$text",
      Map("tcp" -> text),
      lineage,
      if (inline) out.toByteArray else null,
      payloadAt,
      Seq(StoreCommit(store, shards.toArray, loads, loadNs = text.length, Map(text -> shards.size), sections.toArray))
    )
  }

  protected def content(root: String, batch: Long): Seq[Map[String, String]] = {
    val d = new StateDirectory(root, hadoop)
    val m = d.readManifest(batch, d.newestGenerations()(batch))
    val out = Array.fill(shardCount)(Map.empty[String, String])
    new ShardLoader(d).load(m, store, 0 until shardCount) { (s, l) =>
      val t = l.content.familyOrNull("default")
      if (t != null) {
        out(s) = (0L to batch).map(keyOf).distinct.flatMap { k =>
          val ref = t.table.find(new KeyBytes().set(k.getBytes))
          if (ref < 0) None
          else {
            val at = (t.table.valueAt(ref) - Platform.BYTE_ARRAY_OFFSET).toInt
            Some(k -> new String(t.table.page(ref), at, t.table.valueLength(ref)))
          }
        }.toMap
      }
    }
    out.toSeq
  }

  protected def manifests(root: String): Seq[String] = {
    val d = Path.of(root, "_penstock", "manifests")
    if (!Files.exists(d)) Nil else d.toFile.list.toSeq.filterNot(_.startsWith(".")).sorted
  }

  /** Writes a snapshot file of some shards and reports it to the run. */
  protected def snapshot(c: QueryCommits, version: Long, shards: Seq[(Int, UUID, ByteSink => Unit)]): Container = {
    val file = Container.Snapshots(version, UUID.randomUUID())
    val out = new ByteSink
    val entries = shards.map { case (shard, lineage, write) =>
      val at = out.size
      write(out)
      val section = Section(store, shard, at, out.size - at, FileFormat.crc(out.array, at, out.size - at))
      SnapshotEntry(version, lineage, section)
    }
    val body = SectionTable.encode(entries.map(_.section))
    new StateDirectory(c.stateRoot, hadoop).write(file.path, FileFormat.Kind.Snapshots, body, out.array, out.size)
    c.snapshotsWritten(SnapshotsWritten(c.runId, file, FileFormat.HeaderBytes.toLong + body.length, entries))
    file
  }

  /** Writes the content that a shard has in a manifest. */
  protected def contentOf(c: QueryCommits, m: Manifest, shard: Int)(out: ByteSink): Unit =
    new ShardLoader(new StateDirectory(c.stateRoot, hadoop)).loadOne(m, store, shard).content.image.writeTo(out)
}
