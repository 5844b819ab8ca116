package io.penstock.state.format

import java.util.UUID

/**
 * Offer of an executor's shards to another executor, which should copy them into its memory. Specified in
 * docs/PROTOCOL.md, section 13.
 *
 * @param stateRoot
 *   State directory of the query
 * @param baseShards
 *   Number of base shards, S
 * @param executor
 *   The executor that has the shards, as a task location
 * @param addresses
 *   Addresses of that executor's sidecar, by transport
 */
final case class ShardOffer(
    stateRoot: String,
    baseShards: Int,
    executor: String,
    addresses: Map[String, String],
    stores: Seq[OfferedStore]
) {

  /** Distinct shards of all stores. */
  def shards: Seq[Int] = stores.flatMap(_.shards.map(_._1)).distinct
}

/**
 * Offered shards of a store.
 *
 * @param version
 *   Version of the store, at which all shards are
 * @param shards
 *   Shards with their lineages
 */
final case class OfferedStore(store: StoreKey, version: Long, shards: Seq[(Int, UUID)])

object ShardOffer {

  /** Minimum size of a store and of an address in an offer. */
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
    offer.stores.foreach { offered =>
      StoreKey.put(out, offered.store)
      out.putVarint(offered.version)
      ShardQuestion.putShards(out, offered.shards)
    }
    out.toByteArray
  }

  /** @throws MalformedData if the bytes do not follow the format */
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

  /** The answer to an offer: the shards that the other executor now has completely, in all offered stores. */
  def encodeTaken(shards: Seq[Int]): Array[Byte] = {
    val out = new ByteSink(8 + 2 * shards.size)
    out.putByte(ShardQuestion.Version)
    out.putVarint(shards.size)
    shards.foreach(out.putVarint(_))
    out.toByteArray
  }

  /** @throws MalformedData if the bytes do not follow the format */
  def decodeTaken(bytes: Array[Byte]): Seq[Int] = {
    val in = new ByteSource(bytes)
    ShardAnswer.checkVersion(in, ShardQuestion.Version)
    val shards =
      Seq.fill(in.getCount("number of shards", in.remaining))(in.getNumber("shard", 0L, FileFormat.MaxShards).toInt)
    in.expectEnd("shard")
    shards
  }
}
