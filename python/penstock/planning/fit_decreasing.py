"""Least-Load Fit Decreasing with Adjust (LLFD; Fang et al., section 3.1), corrected, for a million keys.

It works on records of equal keys (section 4.1 of the paper). A record may have a single key.

Two facts make it fast. First, keys are placed by decreasing cost, and only cheaper keys are ever taken out to make
room, so placed keys stay, and all keys that can be taken out were there from the beginning. Second, the destination
with the least load is below the mean, so a key fits there unless it costs more than the tolerance. There are at most
destinations / theta such keys, and only for these other destinations are considered.
"""

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.planning.compiled import compiled
from penstock.planning.load import Loads, Placement
from penstock.planning.sorting import Keys, heaviest_first, order_bits

Counts = NDArray[np.int32]
Taken = list[tuple[float, Any, Any]]
"""Heap of keys that were taken out: negative cost, record, number of keys."""

# Keys are divided into classes by the upper bits of their weight: 8 classes for each power of two.
_CLASS_SHIFT = np.uint32(20)
_CLASSES = 1 << 12


@dataclass(frozen=True)
class Fit:
    """The moves that bring loads within the limit.

    Parameters
    ----------
    record, destination, keys
        Record, new destination and number of keys of each move; shape ``(moves,)`` each. A record may occur several
        times, also with its current destination.
    load
        Load of each destination after the moves.
    fallbacks
        Number of keys that fitted nowhere and went to the least loaded destination.
    """

    record: Keys
    destination: Placement
    keys: Counts
    load: Loads
    fallbacks: int


def fit_decreasing(
    destination: Placement,
    cost: Loads,
    priority: NDArray[np.float32],
    count: Counts,
    load: Loads,
    limit: float,
) -> Fit:
    """Take keys from destinations above the limit, and place them by decreasing cost where they fit.

    A key goes to the least loaded destination where it fits, possibly after cheaper keys have been taken out (Adjust),
    which are then placed in the same way. The paper does not say where a key goes that fits nowhere, which can happen
    even if a perfect balance exists. Here it goes to the least loaded destination.

    Parameters
    ----------
    destination
        Current destination of the keys of each record; shape ``(records,)``.
    cost
        Cost of one key of each record, not negative; shape ``(records,)``.
    priority
        Priority of the keys of each record (psi), not negative; shape ``(records,)``. Keys with the highest priority
        are taken out first, ties by their number.
    count
        Number of keys of each record; shape ``(records,)``.
    load
        Load of each destination; shape ``(destinations,)``.
    limit
        Largest load that is accepted, at least the mean.
    """
    left, loaded = count.copy(), load.copy()
    bits = order_bits(priority)
    by_class = _cost_by_class(destination, cost, bits, left, len(load))
    above, start = _members(destination, bits, left, _first_classes(by_class, load - limit))
    removed = _take_out(above, start, cost, left, loaded, limit)
    waiting = heaviest_first(removed, order_bits(cost[removed].astype(np.float32)))
    amount = count[waiting] - left[waiting]
    largest = float(cost[waiting[0]]) if len(waiting) else 0.0
    room = limit - float(load.sum()) / len(load)
    # Members with a total cost of the largest key are usually enough. The others are sorted only when needed.
    ready = np.full(len(load), largest if largest > room else 0.0)
    members, start = _members(destination, bits, left, _first_classes(by_class, ready))
    large = np.flatnonzero(cost > room) if largest > room else waiting[:0]
    record, to, keys, fallbacks = _place(
        waiting, amount, members, start, large, destination, cost, priority, left, loaded, limit
    )
    return Fit(record, to, keys, loaded, fallbacks)


def _members(
    destination: Placement, bits: NDArray[np.uint32], left: Counts, first: NDArray[np.int64]
) -> tuple[Keys, NDArray[np.int64]]:
    """Return each destination's records from a class on, by decreasing weight, and where each destination starts."""
    records = _of_classes(destination, bits, left, first)
    records = heaviest_first(records, bits[records])
    owner = destination[records].astype(np.uint16)
    start = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=len(first)), out=start[1:])
    return records[np.argsort(owner, kind="stable")], start


def _first_classes(by_class: Loads, wanted: Loads) -> NDArray[np.int64]:
    """Return each destination's lowest class such that its keys from there on cost as much as wanted."""
    from_top = np.cumsum(by_class[:, ::-1], axis=1)
    needed = np.minimum((from_top < wanted[:, None]).sum(axis=1) + 1, _CLASSES)
    return np.where(wanted > 0, _CLASSES - needed, _CLASSES)


@compiled
def _cost_by_class(
    destination: Placement, cost: Loads, bits: NDArray[np.uint32], left: Counts, destinations: int
) -> Loads:
    total = np.zeros((destinations, _CLASSES))
    for record in range(len(destination)):
        total[destination[record], bits[record] >> _CLASS_SHIFT] += cost[record] * left[record]
    return total


@compiled
def _of_classes(destination: Placement, bits: NDArray[np.uint32], left: Counts, first: NDArray[np.int64]) -> Keys:
    records = np.empty(len(destination), dtype=np.int64)
    found = 0
    for record in range(len(destination)):
        if bits[record] >> _CLASS_SHIFT >= first[destination[record]] and left[record] > 0:
            records[found] = record
            found += 1
    return records[:found].copy()


@compiled
def _take_out(members: Keys, start: NDArray[np.int64], cost: Loads, left: Counts, load: Loads, limit: float) -> Keys:
    """Take keys out of each destination until it is within the limit; return their records."""
    removed = np.empty(len(members), dtype=np.int64)
    found = 0
    for destination in range(len(load)):
        for at in range(start[destination], start[destination + 1]):
            if load[destination] <= limit:
                break
            record = members[at]
            keys = _enough(load[destination] - limit, cost[record], left[record])
            left[record] -= keys
            load[destination] -= keys * cost[record]
            removed[found] = record
            found += 1
    return removed[:found].copy()


@compiled
def _enough(wanted: float, cost: float, left: int) -> int:
    """Return the number of keys that cost as much as wanted, or all if they are not enough or cost nothing."""
    return left if cost * left <= wanted else min(left, int(np.ceil(wanted / cost)))


@compiled
def _place(
    waiting: Keys,
    amount: Counts,
    members: Keys,
    start: NDArray[np.int64],
    large: Keys,
    destination: Placement,
    cost: Loads,
    priority: NDArray[np.float32],
    left: Counts,
    load: Loads,
    limit: float,
) -> tuple[Keys, Placement, Counts, int]:
    at, end = start[:-1].copy(), start[1:].copy()
    complete = np.zeros(len(load), dtype=np.bool_)
    # Cost of the keys placed so far. They cost at least as much as all later keys, and stay.
    stays = np.zeros(len(load))
    taken: Taken = [(0.0, np.int64(0), np.int32(0))]
    taken.pop()
    moved: Keys = np.empty(2 * len(waiting) + 16, dtype=np.int64)
    moved_to: Placement = np.empty(len(moved), dtype=np.int32)
    moved_keys: Counts = np.empty(len(moved), dtype=np.int32)
    moves, fallbacks, position = 0, 0, 0
    record, keys = np.int64(0), np.int32(0)
    while True:
        if keys == 0:
            if position < len(waiting) and (
                len(taken) == 0 or (-cost[waiting[position]], waiting[position]) <= (taken[0][0], taken[0][1])
            ):
                record, keys = waiting[position], amount[position]
                position += 1
            elif len(taken) > 0:
                _, record, keys = heapq.heappop(taken)
            else:
                break
        price, placed = cost[record], np.int32(1)
        chosen = load.argmin()
        if load[chosen] + price <= limit:
            if keys > 1:
                placed = _run_length(load, chosen, price, keys, limit)
        else:
            for candidate in np.argsort(load, kind="mergesort"):
                if stays[candidate] + _fixed_cost(large, destination, cost, left, candidate, price) + price > limit:
                    continue
                members = _make_room(
                    candidate, price, members, at, end, complete, destination, cost, priority, left, load, limit, taken
                )
                if load[candidate] + price <= limit:
                    chosen = candidate
                    break
            if load[chosen] + price > limit:
                chosen = load.argmin()
                fallbacks += 1
        load[chosen] += placed * price
        stays[chosen] += placed * price
        keys -= placed
        if moves == len(moved):
            moved = np.concatenate((moved, moved))
            moved_to = np.concatenate((moved_to, moved_to))
            moved_keys = np.concatenate((moved_keys, moved_keys))
        moved[moves], moved_to[moves], moved_keys[moves] = record, chosen, placed
        moves += 1
    return moved[:moves].copy(), moved_to[:moves].copy(), moved_keys[:moves].copy(), fallbacks


@compiled
def _make_room(
    owner: int,
    price: float,
    members: Keys,
    at: NDArray[np.int64],
    end: NDArray[np.int64],
    complete: NDArray[np.bool_],
    destination: Placement,
    cost: Loads,
    priority: NDArray[np.float32],
    left: Counts,
    load: Loads,
    limit: float,
    taken: Taken,
) -> Keys:
    """Take out cheaper keys until a key fits; return the members, completed if necessary.

    The caller has checked that there are enough cheaper keys.
    """
    while load[owner] + price > limit:
        if at[owner] == end[owner]:
            if complete[owner]:
                break
            rest = _all_members(destination, priority, left, owner)
            at[owner], end[owner] = len(members), len(members) + len(rest)
            members = np.concatenate((members, rest))
            complete[owner] = True
            continue
        record = members[at[owner]]
        # A skipped record stays too expensive, because later keys cost less.
        if left[record] == 0 or cost[record] >= price:
            at[owner] += 1
            continue
        keys = np.int32(_enough(load[owner] + price - limit, cost[record], left[record]))
        left[record] -= keys
        load[owner] -= keys * cost[record]
        heapq.heappush(taken, (-cost[record], record, keys))
    return members


@compiled
def _fixed_cost(large: Keys, destination: Placement, cost: Loads, left: Counts, owner: int, price: float) -> float:
    """Sum the cost of the keys that a destination had from the beginning, still has, and that cost at least `price`."""
    total = 0.0
    for record in large:
        if destination[record] == owner and cost[record] >= price:
            total += cost[record] * left[record]
    return total


@compiled
def _run_length(load: Loads, chosen: Any, price: float, keys: Any, limit: float) -> np.int32:
    """Return how many keys in a row go to the least loaded destination, which has room for at least one."""
    if price == 0:
        return np.int32(keys)
    room = limit
    for other in range(len(load)):
        if other != chosen and load[other] < room:
            room = load[other]
    return np.int32(max(1, min(keys, int((room - load[chosen]) / price))))


@compiled
def _all_members(destination: Placement, priority: NDArray[np.float32], left: Counts, owner: int) -> Keys:
    records = np.flatnonzero((destination == owner) & (left > 0))
    return records[np.argsort(-priority[records], kind="mergesort")]
