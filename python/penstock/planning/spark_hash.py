"""Computes where Spark puts a row: its Murmur3 hash of the key, modulo the number of partitions or shards."""

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Placement

Hashes = NDArray[np.int32]

SEED = 42


def hash_longs(values: NDArray[np.int64], seed: int = SEED) -> Hashes:
    """Hash values of Spark's types bigint and timestamp (microseconds), as ``hash(column)`` in SQL does.

    Parameters
    ----------
    values
        Values to hash; shape ``(rows,)``.
    seed
        Hash of the previous column, if a key has several columns.
    """
    return _hash_longs(np.ascontiguousarray(values, dtype=np.int64), np.uint32(seed & 0xFFFFFFFF))


def hash_ints(values: NDArray[np.int32], seed: int = SEED) -> Hashes:
    """Hash values of Spark's types int, smallint, tinyint and date."""
    return _hash_ints(np.ascontiguousarray(values, dtype=np.int32), np.uint32(seed & 0xFFFFFFFF))


def hash_strings(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: int = SEED) -> Hashes:
    """Hash strings that are stored one after the other as UTF-8.

    Parameters
    ----------
    offsets
        Start of each string, and the end of the last one; shape ``(rows + 1,)``.
    data
        Bytes of all strings.
    seed
        Hash of the previous column, if a key has several columns.
    """
    return _hash_strings(np.ascontiguousarray(offsets, dtype=np.int64), data, np.uint32(seed & 0xFFFFFFFF))


def partition(hashes: Hashes, partitions: int) -> Placement:
    """Return the partition or shard of each hash, as `HashPartitioning` does: the non-negative remainder."""
    return np.mod(hashes, np.int32(partitions)).astype(np.int32)


@compiled
def _rotated(value: np.uint32, bits: int) -> np.uint32:
    return np.uint32((value << np.uint32(bits)) | (value >> np.uint32(32 - bits)))


@compiled
def _mixed(h: np.uint32, k: np.uint32) -> np.uint32:
    k = np.uint32(_rotated(np.uint32(k * np.uint32(0xCC9E2D51)), 15) * np.uint32(0x1B873593))
    return np.uint32(_rotated(np.uint32(h ^ k), 13) * np.uint32(5) + np.uint32(0xE6546B64))


@compiled
def _ended(h: np.uint32, length: int) -> np.int32:
    h = np.uint32(h ^ np.uint32(length))
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.int32(h ^ (h >> np.uint32(16)))


@compiled
def _hash_longs(values: NDArray[np.int64], seed: np.uint32) -> Hashes:
    hashes = np.empty(len(values), dtype=np.int32)
    for row in range(len(values)):
        value = np.uint64(values[row])
        h = _mixed(seed, np.uint32(value & np.uint64(0xFFFFFFFF)))
        hashes[row] = _ended(_mixed(h, np.uint32(value >> np.uint64(32))), 8)
    return hashes


@compiled
def _hash_ints(values: NDArray[np.int32], seed: np.uint32) -> Hashes:
    hashes = np.empty(len(values), dtype=np.int32)
    for row in range(len(values)):
        hashes[row] = _ended(_mixed(seed, np.uint32(values[row])), 4)
    return hashes


@compiled
def _hash_strings(offsets: NDArray[np.int64], data: NDArray[np.uint8], seed: np.uint32) -> Hashes:
    hashes = np.empty(len(offsets) - 1, dtype=np.int32)
    for row in range(len(hashes)):
        start, end = offsets[row], offsets[row + 1]
        tail = start + (end - start) // 4 * 4
        h = seed
        for at in range(start, tail, 4):
            word = (
                np.uint32(data[at])
                | (np.uint32(data[at + 1]) << np.uint32(8))
                | (np.uint32(data[at + 2]) << np.uint32(16))
                | (np.uint32(data[at + 3]) << np.uint32(24))
            )
            h = _mixed(h, np.uint32(word))
        # Unlike the published Murmur3, Spark mixes each byte of the tail separately, as a signed byte.
        for at in range(tail, end):
            h = _mixed(h, np.uint32(np.int32(np.int8(data[at]))))
        hashes[row] = _ended(h, end - start)
    return hashes
