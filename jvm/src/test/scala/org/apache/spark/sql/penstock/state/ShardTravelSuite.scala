package org.apache.spark.sql.penstock.state

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.penstock.lease.Holder

import io.penstock.errors.PenstockException
import io.penstock.sidecars.transfer._
import io.penstock.state.engine.ShardState
import io.penstock.state.format._
import io.penstock.state.memory.MemoryBound
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** Shards that another executor sends, with the real source and format but without a transport. */
class ShardTravelSuite extends AnyFunSuite with BeforeAndAfterEach {
  private val root = "travel"
  private val stores = new ShardStores
  private val sender = new ShardSender(stores, new ShardReceiver(stores, MemoryBound.none, new Peers))
  private val key = StoreKey(0L, "default")
  private val holder = Holder("executor_h_1", Map("tcp" -> "h"))

  private def lineage(shard: Int) = new UUID(7L, shard.toLong)

  private def fill(shards: Range, baseShards: Int): Seq[WantedShard] = {
    val store = stores.get(root, key, baseShards)
    shards.map { s =>
      store.slot(s).open(lineage(s), 1L)(ShardSlot.Loaded(new ShardState, s, 1L)).close()
      WantedShard(s, lineage(s), ShardRefs.NeverWritten)
    }
  }

  override protected def afterEach(): Unit = stores.drop(root)

  /** @param change damages an answer on its way */
  private class Peers(change: Array[Byte] => Array[Byte] = identity) extends PeerQuestions {
    val questionBytes = mutable.Buffer[Int]()

    override def ask[A](peer: Map[String, String], payload: Array[Byte], limitMs: Int)(
        read: (MessageIn, String) => A
    ): Outcome[A] = {
      questionBytes += payload.length
      sender.give(payload) match {
        case Left(why) => Outcome.Refused(why)
        case Right(message) =>
          val out = new ByteSink
          message.writeTo((bytes: Array[Byte], from: Int, count: Int) => out.put(bytes, from, count))
          Outcome.Here(read(new Arrived(change(out.toByteArray)), "loop"))
      }
    }
  }

  private class Arrived(bytes: Array[Byte]) extends MessageIn {
    private var at = 0
    override def remaining: Int = bytes.length - at
    override def read(into: Array[Byte], from: Int, count: Int): Unit = {
      System.arraycopy(bytes, at, into, from, count)
      at += count
    }
  }

  private def bring(wanted: Seq[WantedShard], peers: PeerQuestions): (Seq[Int], Seq[Int]) = {
    val received = mutable.Buffer[Int]()
    val left = new ShardTravel(root, key, peers).bring(wanted, _ => Seq(holder))((shard, _, _) => received += shard)
    (received.toSeq, left)
  }

  test("an error while taking a shard, such as the memory bound, reaches the task") {
    val wanted = fill(0 until 4, 4)
    val used = mutable.Buffer[Int]()
    val e = intercept[PenstockException] {
      new ShardTravel(root, key, new Peers).bring(wanted, _ => Seq(holder)) { (shard, _, _) =>
        used += shard
        if (used.size == 2) throw new PenstockException("PENSTOCK_STATE_TOO_LARGE", "no room")
      }
    }
    assert(e.errorClass == "PENSTOCK_STATE_TOO_LARGE" && used.size == 2)
  }

  test("a damaged answer, or an answer to another question, is rejected") {
    val wanted = fill(0 until 3, 4)
    assert(bring(wanted, new Peers) == ((Seq(0, 1, 2), Nil)))
    assert(bring(wanted, new Peers(a => a.updated(a.length / 2, (a(a.length / 2) ^ 4).toByte)))._2.nonEmpty)
    var first = Option.empty[Array[Byte]]
    val late = new Peers(answer => {
      val before = first.getOrElse(answer)
      first = Some(before)
      before
    })
    assert(bring(wanted.take(1), late) == ((Seq(0), Nil)))
    assert(bring(wanted.slice(1, 2), late) == ((Nil, Seq(1))), "the image of another shard")
  }

  test("shards that do not fit into one question are split into several") {
    val wanted = fill(0 until 20000, 20000)
    val peers = new Peers
    val (received, left) = bring(wanted, peers)
    assert(received == (0 until 20000) && left.isEmpty)
    assert(peers.questionBytes.size == 3 && peers.questionBytes.max <= 512 * 1024)
  }
}
