package io.penstock.sidecars.transfer

import io.penstock.PropertyChecks
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class ChannelRecordSuite extends AnyFunSuite with PropertyChecks {
  private val records = for {
    kind <- Gen.oneOf(ChannelRecordKind.all)
    number <- Gen.choose(0L, Long.MaxValue)
    messageBytes <- Gen.choose(0L, Long.MaxValue)
    dataBytes <- Gen.choose(0, Int.MaxValue)
  } yield ChannelRecord(kind, number, messageBytes, dataBytes)

  private def bytes(record: ChannelRecord) = ChannelRecord.encode(record).array

  test("records round-trip, and a flipped bit is detected") {
    check(Prop.forAll(records, Gen.choose(0, 8 * ChannelRecord.Bytes - 1)) { (record, bit) =>
      val flipped = bytes(record)
      flipped(bit / 8) = (flipped(bit / 8) ^ (1 << bit % 8)).toByte
      ChannelRecord.decode(bytes(record)) == record &&
      (try { ChannelRecord.decode(flipped); false }
      catch { case _: BrokenChannel => true })
    })
  }

  test("the encoded bytes match docs/PROTOCOL.md, section 12") {
    val found =
      bytes(ChannelRecord(ChannelRecordKind.Slice, 7, 0x100000, 0x40000)).take(28).map("%02x".format(_)).mkString
    assert(found == "5053544c" + "04010000" + "0700000000000000" + "0000100000000000" + "00000400")
  }

  test("random bytes are not a record") {
    check(Prop.forAll(Gen.listOfN(ChannelRecord.Bytes, Gen.choose(Byte.MinValue, Byte.MaxValue))) { data =>
      try { ChannelRecord.decode(data.toArray); false }
      catch { case _: BrokenChannel => true }
    })
  }
}
