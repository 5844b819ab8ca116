package org.apache.spark.sql.penstock.routing

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

import io.penstock.conf.{Mode, QuerySettings}
import io.penstock.errors.PenstockException
import io.penstock.routing.PinOrders
import io.penstock.sharding.Layout

/** Keys that the application has pinned and unpinned in the regions of one run. Not thread safe. */
final private[routing] class PinRequests {
  private val orders = mutable.Map.empty[Long, PinOrders]
  private val pinnedKeys = mutable.Map.empty[Long, PinnedKeys]
  private var keyTypes = Map.empty[Long, Seq[DataType]]

  /** Starts a batch, whose regions have these keys. */
  def beginBatch(regions: Seq[PlannedRegion]): Unit =
    // A pinned key leaves its shard, which is impossible if inputs are read by shard.
    keyTypes = regions.collect { case PlannedRegion(r, _, Route.AtBarrier(inputs, Nil)) =>
      r.region -> inputs.head.outputPartitioning.asInstanceOf[HashPartitioning].expressions.map(_.dataType)
    }.toMap

  def ordersOf(region: Long): PinOrders = orders.getOrElse(region, PinOrders())

  def namesOf(region: Long): PinnedKeys = pinnedKeys.getOrElseUpdate(region, new PinnedKeys)

  /**
   * Pins a key, or returns it to its base shard, in all regions that have keys of its types.
   *
   * @param key
   *   Values of the key
   * @param pin
   *   Whether the key is pinned; otherwise it is unpinned
   * @param failure
   *   First part of the error message
   * @param unrouted
   *   Returns why the regions of the batch do not read only hash exchanges
   * @throws io.penstock.errors.PenstockException
   *   PENSTOCK_CANNOT_PIN or PENSTOCK_NO_SUCH_KEY
   */
  def request(
      key: Seq[Expression],
      pin: Boolean,
      failure: String,
      settings: QuerySettings,
      conf: SQLConf,
      unrouted: => Seq[String]
  ): Unit = {
    def refuse(errorClass: String, why: String) = throw new PenstockException(errorClass, s"$failure: $why")
    if (settings.mode != Mode.On) {
      refuse("PENSTOCK_CANNOT_PIN", s"no region of the query is routed in mode ${settings.mode}. Set penstock.mode=on")
    }
    if (keyTypes.isEmpty) {
      refuse("PENSTOCK_CANNOT_PIN", s"no region of the query reads only hash exchanges: ${unrouted.mkString("; ")}")
    }
    val keys = keyTypes.flatMap { case (region, types) => KeyHash.of(key, types, conf).map(region -> _) }
    if (keys.isEmpty) {
      val known = keyTypes.toSeq.sortBy(_._1).map { case (r, types) =>
        s"region $r: ${types.map(_.sql).mkString(", ")}"
      }
      val types = if (key.isEmpty) "nothing" else key.map(_.dataType.sql).mkString(", ")
      refuse(
        "PENSTOCK_NO_SUCH_KEY",
        s"the query has keys of other types (${known.mkString("; ")}), and $types was given"
      )
    }
    val changed = keys.map { case (region, key) =>
      val before = ordersOf(region)
      region -> (if (pin) before.pin(key.hash) else before.unpin(key.hash))
    }
    if (pin && changed.exists(_._2.pinned.size > settings.pinnedMax)) {
      refuse(
        "PENSTOCK_CANNOT_PIN",
        s"penstock.pinned.max=${settings.pinnedMax} does not allow more pinned keys. Unpin another key, or increase " +
          s"penstock.pinned.max, up to ${Layout.MaxPinSlots}"
      )
    }
    orders ++= changed
    if (pin) keys.foreach { case (region, key) => namesOf(region).named(key) }
  }
}
