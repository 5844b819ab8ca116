package org.apache.spark.sql.penstock.benchmarks

import java.nio.file.Path
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.penstock.state.{AnswerBytes, ShardReceiver, ShardSender, ShardSlot, ShardStores}
import org.apache.spark.sql.penstock.storage.StateDirectory
import org.apache.spark.unsafe.Platform

import io.penstock.sidecars.transfer.{AnswerSource, MessageIn, Outcome, PeerQuestions, TransferProcess}
import io.penstock.state.engine.{ShardImage, ShardState}
import io.penstock.state.format._
import io.penstock.state.memory.MemoryBound

/**
 * A shard in the memory of one executor, and the routes by which another executor can get it. Each route ends when the
 * content can be read there.
 *
 * @param bytes
 *   approximate size of the content
 */
final class MovedShard(bytes: Int, directory: Path) {
  private val root = directory.toString
  private val stores = new ShardStores
  private val store = StoreKey(0L, "default")
  private val lineage = UUID.randomUUID()
  private val state = MovedShard.filled(MovedShard.records(bytes))
  private val slot = {
    val filled = stores.get(root, store, 1).slot(0)
    filled.open(lineage, 0L)(ShardSlot.Loaded(state, 1, 1L)).close()
    filled
  }
  private val question =
    ShardQuestion.encode(ShardQuestion(lineage, root, store, Seq(WantedShard(0, lineage, ShardRefs.NeverWritten))))

  /** Sends the shard to sidecars that request it. */
  val source: AnswerSource = new ShardSender(stores, new ShardReceiver(stores, MemoryBound.none, MovedShard.NoPeers))

  /** Gives the shard to a task of the executor that has it. */
  def inside(): ShardState = {
    val opened = slot.open(lineage, 1L)(throw new IllegalStateException("the shard is not in memory"))
    try opened.content
    finally opened.close()
  }

  /** Gets the shard through the transfer sidecars. */
  def travel(by: TransferProcess, to: Map[String, String]): ShardState =
    by.ask(to, question, MovedShard.LimitMs) { (answer, _) =>
      var found: ShardState = null
      ShardAnswer.read(lineage, new AnswerBytes(answer), 1)((_, in) => ShardImage.read(in))((_, _, content) =>
        found = content.orNull
      )
      found
    } match {
      case Outcome.Here(found) => found
      case other => throw new IllegalStateException(s"the shard was not received: $other")
    }

  /** Writes the shard as a snapshot, and returns a function that reads it. */
  def inCheckpoint(conf: Configuration): () => ShardState = {
    val files = new StateDirectory(root, conf)
    val image = new ByteSink(bytes)
    state.image.writeTo(image)
    val file = Container.Snapshots(0L, UUID.randomUUID())
    val section = Section(store, 0, 0, image.size, FileFormat.crc(image.array, 0, image.size))
    val body = SectionTable.encode(Seq(section))
    files.write(file.path, FileFormat.Kind.Snapshots, body, image.array, image.size)
    val ref = SectionRef(file, FileFormat.HeaderBytes.toLong + body.length, section.length, section.crc)
    () => new StateDirectory(root, conf).readSections(file, Seq(ref), "the benchmark")(ShardImage.read).head
  }

  /** Whether a received shard has all records. */
  def isWhole(found: ShardState): Boolean = records(found) == records(state) && records(state) > 0

  private def records(shard: ShardState): Int = shard.familyOrNull("default").table.size

  def drop(): Unit = stores.drop(root)
}

object MovedShard {

  /** The shard is asked for, and never offered. */
  private object NoPeers extends PeerQuestions {
    override def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
        read: (MessageIn, String) => A
    ): Outcome[A] = Outcome.Lost("this executor has no sidecar")
  }

  private val KeyBytes = 16
  private val ValueBytes = 64
  private val RecordBytes = KeyBytes + ValueBytes + 16
  private val LimitMs = 60000

  /** Number of records of a shard of this size. */
  def records(bytes: Int): Int = bytes / RecordBytes

  private def filled(records: Int): ShardState = {
    val out = new ByteSink(1 << 16)
    val writer = new ChangeSet.Writer(out)
    writer.family("default", FamilyTraits(ordered = false, multiValued = false))
    val (key, value) = (new Array[Byte](KeyBytes), new Array[Byte](ValueBytes))
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    (0 until records).foreach { i =>
      Platform.putLong(key, at, i * 0x9e3779b97f4a7c15L)
      Platform.putLong(value, at, i.toLong)
      writer.put(key, at, KeyBytes, value, at, ValueBytes)
    }
    writer.finish(): Unit
    val state = new ShardState
    state(out.array, 0, out.size)
    state
  }
}
