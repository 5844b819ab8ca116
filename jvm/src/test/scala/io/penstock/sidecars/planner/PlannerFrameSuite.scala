package io.penstock.sidecars.planner

import io.penstock.PropertyChecks
import org.scalacheck.{Gen, Prop}
import org.scalatest.funsuite.AnyFunSuite

class PlannerFrameSuite extends AnyFunSuite with PropertyChecks {
  private val frames: Gen[PlannerFrame] = for {
    kind <- Gen.oneOf(FrameKind.all)
    number <- Gen.choose(0L, Long.MaxValue)
    fields <- Gen.mapOf(Gen.zip(Gen.alphaStr, Gen.asciiPrintableStr))
    body <- Gen.listOf(Gen.choose(Byte.MinValue, Byte.MaxValue))
  } yield {
    val head = PlannerFrame.newHead()
    fields.foreach { case (k, v) => head.put(k, v) }
    PlannerFrame(kind, number, head, body.toArray)
  }

  private def decode(bytes: Array[Byte]): PlannerFrame = {
    val prefix = PlannerFrame.decodePrefix(bytes.take(PlannerFrame.PrefixBytes))
    PlannerFrame.decodeRest(prefix, bytes.drop(PlannerFrame.PrefixBytes))
  }

  test("an encoded frame decodes to the same value") {
    check(Prop.forAll(frames)(f => decode(PlannerFrame.encode(f)) == f))
  }

  test("every flipped bit and every lost byte is detected") {
    check(Prop.forAll(frames, Gen.choose(0, Int.MaxValue), Gen.choose(0, Int.MaxValue)) { (frame, bit, lost) =>
      val bytes = PlannerFrame.encode(frame)
      val b = bit % (bytes.length * 8)
      val flipped = bytes.clone()
      flipped(b / 8) = (flipped(b / 8) ^ (1 << (b % 8))).toByte
      intercept[BrokenFrame](decode(flipped))
      val kept = PlannerFrame.PrefixBytes + lost % (bytes.length - PlannerFrame.PrefixBytes)
      intercept[BrokenFrame](decode(bytes.take(kept)))
      true
    })
  }

  test("a frame encoded by Python is read") {
    // Output of penstock.sidecars.planner.frame.encode(Frame(Kind.REFUSED, 7, {"reason": "no"}, b"ab"))
    val hex = "5053544b" + "0705" + "0000" + "0700000000000000" + "0f000000" + "02000000"
    val written = PlannerFrame.encode(PlannerFrame(
      FrameKind.Refused,
      7,
      PlannerFrame.newHead().put("reason", "no"),
      "ab".getBytes
    ))
    assert(written.take(24).map("%02x".format(_)).mkString == hex)
    assert(new String(written.drop(28)) == """{"reason":"no"}ab""")
  }
}
