package io.penstock.state.engine

/** Reads the records of an arena. A record consists of the lengths of key and value (ints), key, value and trailer. */
class Records(val arena: Arena) {
  final def page(ref: Int): Array[Byte] = arena.page(ref)

  final def keyAt(ref: Int): Long = KeyIndex.keyAddress(arena.offset(ref))

  final def keyLength(ref: Int): Int = KeyIndex.keyLength(page(ref), arena.offset(ref))

  final def valueLength(ref: Int): Int = KeyIndex.valueLength(page(ref), arena.offset(ref))

  final def valueAt(ref: Int): Long = keyAt(ref) + keyLength(ref)

  /** Size of a record without its trailer. */
  final def recordBytes(ref: Int): Int = KeyIndex.HeaderBytes + keyLength(ref) + valueLength(ref)

  final def trailerAt(ref: Int): Long = valueAt(ref) + valueLength(ref)

  /** The key of a record. */
  final def keyOf(ref: Int, key: KeyBytes): KeyBytes = key.set(page(ref), keyAt(ref), keyLength(ref))

  /** The key of a record and its hash, both from an element of [[KeyIndex.hashedRefs]]. */
  final def keyOfHashed(hashedRef: Long, key: KeyBytes): KeyBytes =
    keyOf(hashedRef.toInt, key).hashedAs((hashedRef >>> 32).toInt)
}
