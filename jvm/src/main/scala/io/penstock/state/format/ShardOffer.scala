package io.penstock.state.format

import java.util.UUID

/**
 * What an executor that ends tells another: to take shards that it has in memory. Specified in docs/PROTOCOL.md, section 13.
 *
 * @param stateRoot
 *   the query's state directory
 * @param baseShards
 *   S, how many shards there are without those of pinned hashes
 * @param executor
 *   that ends, as a task location
 * @param addresses
 *   of its sidecar, by transport
 */
final case class ShardOffer(
    stateRoot: String,
    baseShards: Int,
    executor: String,
    addresses: Map[String, String],
    stores: Seq[OfferedStore]
) {

  /** Of all stores, each once. */
  def shards: Seq[Int] = stores.flatMap(_.shards.map(_._1)).distinct
}

/**
 * Shards of a store.
 *
 * @param version
 *   of the store, which every shard has
 * @param shards
 *   each with its lineage
 */
final case class OfferedStore(store: StoreKey, version: Long, shards: Seq[(Int, UUID)])

object ShardOffer {

  /** Least bytes of a store and an address in an offer. */
  private val StoreBytes = 4
  private val AddressBytes = 2

  def encode(offer: ShardOffer): Array[Byte] = {
    val out = new ByteSink(256)
    out.putByte(ShardQuestion.Version)
    out.putByte(ShardQuestion.Take)
    out.putString(offer.stateRoot)
    out.putVarint(offer.baseShards)
    out.putString(offer.executor)
    out.putVarint(offer.addresses.size)
    offer.addresses.foreach { case (transport, address) =>
      out.putString(transport)
      out.putString(address)
    }
    out.putVarint(offer.stores.size)
    offer.stores.foreach { of =>
      StoreKey.put(out, of.store)
      out.putVarint(of.version)
      ShardQuestion.putShards(out, of.shards)
    }
    out.toByteArray
  }

  /** @throws MalformedData where the bytes do not follow the format */
  def decode(bytes: Array[Byte]): ShardOffer = {
    val in = ShardQuestion.start(bytes, ShardQuestion.Take)
    val root = in.getString()
    val baseShards = in.getNumber("number of shards", 1L, FileFormat.MaxShards).toInt
    val executor = in.getString()
    val addresses =
      Seq.fill(in.getCount("number of addresses", in.remaining / AddressBytes))((in.getString(), in.getString())).toMap
    val stores = Seq.fill(in.getCount("number of stores", in.remaining / StoreBytes)) {
      OfferedStore(StoreKey.get(in), in.getNumber("version", 0L, Long.MaxValue), ShardQuestion.getShards(in))
    }
    in.expectEnd("store")
    ShardOffer(root, baseShards, executor, addresses, stores)
  }

  /** The answer to an offer: shards of which the other executor has now all that was offered. */
  def encodeTaken(shards: Seq[Int]): Array[Byte] = {
    val out = new ByteSink(8 + 2 * shards.size)
    out.putByte(ShardQuestion.Version)
    out.putVarint(shards.size)
    shards.foreach(out.putVarint(_))
    out.toByteArray
  }

  /** @throws MalformedData where the bytes do not follow the format */
  def decodeTaken(bytes: Array[Byte]): Seq[Int] = {
    val in = new ByteSource(bytes)
    ShardAnswer.checkVersion(in, ShardQuestion.Version)
    val shards =
      Seq.fill(in.getCount("number of shards", in.remaining))(in.getNumber("shard", 0L, FileFormat.MaxShards).toInt)
    in.expectEnd("shard")
    shards
  }
}
