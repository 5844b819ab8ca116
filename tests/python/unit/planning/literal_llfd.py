"""A literal and slow version of LLFD, algorithm 1 of Fang et al., with the missing else-branch."""


def fit(destination, cost, priority, load, limit):
    """Return the destinations, and the number of keys that fitted nowhere."""
    placed, load = list(destination), list(load)
    waiting = []

    def order(keys):
        return sorted(keys, key=lambda k: (-priority[k], k))

    for d in range(len(load)):
        for key in order([k for k in range(len(placed)) if placed[k] == d]):
            if load[d] <= limit:
                break
            placed[key] = None
            load[d] -= cost[key]
            waiting.append(key)

    def adjust(key, d):
        if load[d] + cost[key] <= limit:
            return []
        exchanged, left = [], load[d] + cost[key]
        for other in order([k for k in range(len(placed)) if placed[k] == d and cost[k] < cost[key]]):
            exchanged.append(other)
            left -= cost[other]
            if left <= limit:
                return exchanged
        return None

    fallbacks = 0
    while waiting:
        key = min(waiting, key=lambda k: (-cost[k], k))
        waiting.remove(key)
        by_load = sorted(range(len(load)), key=lambda d: (load[d], d))
        for d in by_load:
            exchanged = adjust(key, d)
            if exchanged is not None:
                break
        else:
            d, exchanged = by_load[0], []
            fallbacks += 1
        for other in exchanged:
            placed[other] = None
            load[d] -= cost[other]
            waiting.append(other)
        placed[key] = d
        load[d] += cost[key]
    return placed, fallbacks
