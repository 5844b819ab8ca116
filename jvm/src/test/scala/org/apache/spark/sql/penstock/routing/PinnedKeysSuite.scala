package org.apache.spark.sql.penstock.routing

import org.scalatest.funsuite.AnyFunSuite

class PinnedKeysSuite extends AnyFunSuite {
  test("a hash is shown as the text of its key if that is known and allowed, else as the hash") {
    val keys = new PinnedKeys
    keys.named(GivenKey(1, "ORD"))
    keys.heavy(Seq(GivenKey(2, "JFK")))
    assert(Seq(1, 2, 3).map(keys.text(_, shown = true)) == Seq("ORD", "JFK", "hash 00000003"))
    assert(keys.text(1, shown = false) == "hash 00000001")
  }

  test("a key named by the application is reported as absent once, when it is pinned") {
    val keys = new PinnedKeys
    keys.named(GivenKey(1, "ORD"))
    keys.named(GivenKey(2, "ORDD"))
    assert(keys.ran(Set.empty, _ => false).isEmpty)
    assert(keys.ran(Set(1, 2, 3), _ == 1) == Seq("ORDD"))
    assert(keys.ran(Set(1, 2, 3), _ => false).isEmpty)
  }

  test("a pinned key counts as seen until it is unpinned") {
    val keys = new PinnedKeys
    keys.ran(Set(1, 2), _ == 1)
    keys.ran(Set(1, 2), _ => false)
    assert(keys.wasSeen(1) && !keys.wasSeen(2))
    keys.ran(Set(2), _ => false)
    assert(!keys.wasSeen(1))
  }

  test("of many keys, the newest texts and those of pinned keys are kept") {
    val keys = new PinnedKeys
    keys.heavy((1 to 10000).map(i => GivenKey(i, s"key $i")))
    keys.ran(Set(7), _ => true)
    assert(Seq(7, 10000).map(keys.text(_, shown = true)) == Seq("key 7", "key 10000"))
    assert(keys.text(8, shown = true).startsWith("hash "))
  }
}
