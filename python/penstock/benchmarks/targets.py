"""Targets of the benchmarks, as pure functions of the samples. A target that was not measured is not met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.benchmarks import samples
from penstock.benchmarks.samples import Measure, Series, find

AGGREGATION = "aggregation"


@dataclass(frozen=True)
class Target:
    """A target. It is met if ``value`` is at most ``target``, or at least ``target`` if ``at_least`` is set.

    ``value`` is None if it was not measured.
    """

    name: str
    value: float | None
    target: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        if self.value is None:
            return False
        return self.value >= self.target if self.at_least else self.value <= self.target


def _median(series: Series | None, measure: Measure) -> float | None:
    values = series.values(measure) if series is not None else []
    return samples.summarise(values).median if values else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below is not None else None


def _is_stock(side: str, partitions: int) -> bool:
    """Return whether a side is plain Spark with this number of partitions. Its name is ``PROVIDER-PARTITIONS``."""
    provider, _, count = side.rpartition("-")
    return provider != "" and count == str(partitions)


def fastest_stock(series: Sequence[Series], manager: str, partitions: int) -> float | None:
    """Return the median batch time in ms of plain Spark's fastest provider with this number of partitions."""
    return _least_median(
        (s for s in series if s.labels["manager"] == manager and _is_stock(s.labels["side"], partitions)),
        samples.batch_ms,
    )


def _least_median(series: Iterable[Series | None], measure: Measure) -> float | None:
    """Return the smallest median of several series. None if none was measured."""
    return min((m for s in series if (m := _median(s, measure)) is not None), default=None)


def overhead(series: Sequence[Series], operator: str, managers: Iterable[str], cores: int) -> list[Target]:
    """Targets of `overhead`: batch time of Penstock against plain Spark.

    Penstock may take 1.1 times (aggregation) or 1.15 times (other operators) as long as plain Spark with a partition
    per core. For the aggregation, it must be 5 times as fast as plain Spark with 200 partitions with the local file
    manager, and 15 times with Spark's default file manager.
    """
    targets = []
    for manager in managers:
        ours = _median(find(series, manager=manager, side="penstock"), samples.batch_ms)
        few = fastest_stock(series, manager, cores)
        limit = 1.1 if operator == AGGREGATION else 1.15
        name = f"{operator}, {manager} file manager: batch time over the fastest plain Spark's"
        targets.append(Target(f"{name}, {cores} partitions, at most", _ratio(ours, few), limit))
        if operator == AGGREGATION:
            many = fastest_stock(series, manager, 200)
            name = f"{operator}, {manager} file manager: times as fast as the fastest plain Spark"
            least = 15.0 if manager == "default" else 5.0
            targets.append(Target(f"{name}, 200 partitions, at least", _ratio(many, ours), least, at_least=True))
    return targets


def barrier(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `barrier`: balance in every batch, few moves when hot keys move, and the time of the stage."""
    targets = []
    for manager in managers:
        for hot in ("fixed", "moving"):
            sticky = find(series, manager=manager, hot=hot, side="sticky")
            plain = find(series, manager=manager, hot=hot, side="plain")
            keys = f"hot keys {hot}"
            worst = max(sticky.values(samples.imbalance)) if sticky else None
            targets.append(Target(f"{keys}: busiest task over mean, worst batch, at most", worst, 1.05))
            if hot == "moving":
                shares = sticky.values(samples.moved) if sticky else []
                mean = sum(shares) / len(shares) if shares else None
                targets.append(Target(f"{keys}: share of shards that change task, mean, at most", mean, 0.05))
            ratio = _ratio(_median(sticky, samples.stage_ms), _median(plain, samples.stage_ms))
            targets.append(Target(f"{keys}: stage time over plain Spark's, at most", ratio, 0.75))
    return targets


def skew(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `skew`: 95 % of perfect balance if all rows cost the same, and 90 % if costs differ."""
    targets = []
    for manager in managers:
        for zipf, spread, least in (("0.5", "1", 0.95), ("0.85", "1", 0.95), ("0.5", "20", 0.9)):
            for omega in ("0", "2", "8", "16"):
                hybrid = find(series, manager=manager, zipf=zipf, spread=spread, omega=omega, side="hybrid")
                reached = samples.throughput(hybrid.batches) if hybrid else None
                costs = "equal costs" if spread == "1" else f"costs that differ {spread} x"
                name = f"Zipf {zipf}, {costs}, {omega} shuffles a minute: share of perfect balance, at least"
                targets.append(Target(name, reached, least, at_least=True))
    return targets


def latency(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `latency`: at plain Spark's largest rate, a 99th percentile of at most a tenth of plain Spark's."""
    targets = []
    for manager in managers:
        for zipf in ("0.5", "0.85"):
            plain, ours = (
                samples.summarise(rows.values(samples.latency_ms)).p99
                if (rows := find(series, manager=manager, zipf=zipf, spread="1", omega="8", side=side))
                else None
                for side in ("plain", "hybrid")
            )
            name = f"Zipf {zipf}, 8 shuffles a minute: 99th percentile of plain Spark's latency over ours, at least"
            targets.append(Target(name, _ratio(plain, ours), 10.0, at_least=True))
    return targets


def hotkey(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `hotkey`: every change is balanced in its own batch, or two batches later if a key must be pinned."""
    targets = []
    for manager in managers:
        for hot, most, words in (
            ("alone", 0.0, "hot key in a shard with room"),
            ("crowded", float(samples.SETTLED_BATCHES), "hot key that must be pinned"),
        ):
            ours = find(series, manager=manager, hot=hot, side="penstock")
            after = samples.balanced_after(ours) if ours else []
            targets.append(
                Target(f"{words}: batches until balanced, worst change, at most", max(after, default=None), most)
            )
            name = f"{words}: changes, at least"
            targets.append(Target(name, float(len(after)) if after else None, 40.0, at_least=True))
    return targets


def grow(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `grow`: 3.5 times the throughput with four times the cores, while plain Spark's hardly changes."""
    targets = []
    for manager in managers:
        for side, bound, words in (("penstock", 3.5, "at least"), ("plain", 1.1, "at most")):
            few, many = (
                _median(find(series, manager=manager, side=side, cores=cores), samples.batch_ms)
                for cores in ("4", "16")
            )
            name = f"{side}: throughput on 16 cores over that on 4, {words}"
            targets.append(Target(name, _ratio(few, many), bound, at_least=side == "penstock"))
    return targets


def uniform(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `uniform`: at most 2 % slower than with mode off, and no moves after the first batches."""
    targets = []
    for manager in managers:
        on, off = (find(series, manager=manager, side=side) for side in ("on", "off"))
        ratio = _ratio(_median(on, samples.batch_ms), _median(off, samples.batch_ms))
        targets.append(Target("batch time over that with mode off, at most", ratio, 1.02))
        shares = on.values(samples.moved) if on else []
        name = "share of shards that change task after the first 20 batches, worst batch, at most"
        targets.append(Target(name, max(shares, default=None), 0.0))
    return targets


def busy(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `busy`: at most 3 % slower than with mode off, and no moves because of noise."""
    targets = []
    for manager in managers:
        on, off = (find(series, manager=manager, side=side) for side in ("on", "off"))
        ratio = _ratio(_median(on, samples.batch_ms), _median(off, samples.batch_ms))
        targets.append(Target("batch time over that with mode off, at most", ratio, 1.03))
        shares = on.values(samples.moved) if on else []
        name = "share of shards that change task after the first 20 batches, worst batch, at most"
        targets.append(Target(name, max(shares, default=None), 0.0))
    return targets


def observe(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Target of `observe`: at most 2 % slower than with mode off."""
    targets = []
    for manager in managers:
        on, off = (_median(find(series, manager=manager, side=s), samples.batch_ms) for s in ("observe", "off"))
        targets.append(
            Target(f"{manager} file manager: batch time over that with mode off, at most", _ratio(on, off), 1.02)
        )
    return targets


UNROUTED_PLANS = ("node below", "node handing over", "cached table")
"""Plans that have a target. With `node between`, Penstock is slower than plain Spark."""


def unrouted(series: Sequence[Series], managers: Iterable[str], cores: int) -> list[Target]:
    """Targets of `unrouted`: at most 1.2 times plain Spark with a partition per core, except for `node between`."""
    targets = []
    for manager in managers:
        for plan in UNROUTED_PLANS:
            sides = [s for s in series if s.labels["plan"] == plan]
            ours = _median(find(sides, manager=manager, side="penstock"), samples.batch_ms)
            name = f"{plan}, {manager} file manager: batch time over the fastest plain Spark's, at most"
            targets.append(Target(name, _ratio(ours, fastest_stock(sides, manager, cores)), 1.2))
    return targets


def barrier_cost(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `barrier --cost`: additional batch time compared with a binding that is made during planning."""
    limits = {"2": 0.03, "8": 0.12}
    targets = []
    for manager in managers:
        for map_tasks, limit in limits.items():
            late, early = (
                _median(find(series, manager=manager, mapTasks=map_tasks, side=side), samples.batch_ms)
                for side in ("barrier", "planning")
            )
            ratio = _ratio(late, early)
            name = f"{map_tasks} map tasks, {manager} file manager: share of batch time, at most"
            targets.append(Target(name, None if ratio is None else ratio - 1, limit))
    return targets


def store(series: Sequence[Series]) -> list[Target]:
    """Targets of `store`: speed against the faster RocksDB provider that counts rows, size of entries, and scaling."""
    many, few = "1000000", "10000"

    def median(call: str, side: str, keys: str = many) -> float | None:
        return _median(find(series, call=call, side=side, keys=keys), samples.call_ns)

    targets = []
    for call in ("get", "put"):
        counting = (find(series, call=call, side=side, keys=many) for side in ("rocksdb-1", "rocksdb-changelog-1"))
        ratio = _ratio(_least_median(counting, samples.call_ns), median(call, "penstock"))
        targets.append(Target(f"{call}: times as fast as the RocksDB provider, at least", ratio, 5.0, at_least=True))
    size = _median(find(series, call="memory", side="penstock", keys=many), samples.entry_bytes)
    targets.append(Target("bytes of an entry beyond key and value, at most", size, 48.0))
    ratio = _ratio(median("commit", "penstock"), median("commit", "penstock", few))
    targets.append(Target("commit of 1,000 changes, 1,000,000 keys over 10,000, at most", ratio, 1.5))
    return targets


def recover(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `recover`: not slower than plain Spark's faster RocksDB provider."""
    targets = []
    for manager in managers:
        ours = _median(find(series, manager=manager, side="penstock"), samples.start_ms)
        rocksdb = (s for s in series if s.labels["manager"] == manager and s.labels["side"].startswith("rocksdb"))
        name = f"{manager} file manager: time to the end of the first batch over the RocksDB provider's, at most"
        targets.append(Target(name, _ratio(ours, _least_median(rocksdb, samples.start_ms)), 1.0))
    return targets


def large(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `large`: a batch with the larger state takes at most 1.2 times as long as with the smaller one."""
    targets = []
    for manager in managers:
        ours = (s for s in series if s.labels["manager"] == manager and s.labels["side"] == "penstock")
        by_keys = [_median(s, samples.batch_ms) for s in sorted(ours, key=lambda s: int(s.labels["keys"]))]
        ratio = _ratio(by_keys[-1], by_keys[0]) if len(by_keys) > 1 else None
        name = f"{manager} file manager: batch time with the large state over that with the small one, at most"
        targets.append(Target(name, ratio, 1.2))
    return targets


def rescale(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `rescale`: no batch takes longer than 1.5 times the median of batches with as many tasks."""
    targets = []
    for manager in managers:
        for tasks in ("2", "16"):
            phase = find(series, manager=manager, tasks=tasks)
            longest = max(phase.values(samples.batch_ms)) if phase else None
            ratio = _ratio(longest, _median(phase, samples.batch_ms))
            name = f"{tasks} tasks, {manager} file manager: longest batch over the median, at most"
            targets.append(Target(name, ratio, 1.5))
    return targets


def check(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `check`: access checks and checksums take at most 2 % of a batch."""
    key_ns, byte_ns = (_median(find(series, call=call), samples.call_ns) for call in ("access", "checksum"))
    targets = []
    for manager in managers:
        batches = find(series, manager=manager, side="penstock")
        keys, bytes_, ms = (_median(batches, m) for m in (samples.accesses, samples.checked_bytes, samples.batch_ms))
        share = None
        if key_ns is not None and byte_ns is not None and keys is not None and bytes_ is not None and ms is not None:
            share = (key_ns * keys + byte_ns * bytes_) / (ms * 1e6)
        targets.append(Target(f"{manager} file manager: checks, share of batch time, at most", share, 0.02))
    return targets


def plan(series: Sequence[Series]) -> list[Target]:
    """Targets of `plan`: 20 ms and 60 ms with keys; 5 ms with records, whose estimated loads are within 1 %."""
    targets = []
    for theta, most in (("0.08", 20.0), ("0.02", 60.0)):
        exact, merged = (find(series, call=f"{name}, theta {theta}") for name in ("mixed", "compact"))
        targets.append(Target(f"Mixed over keys, theta {theta}: ms, at most", _median(exact, samples.plan_ms), most))
        targets.append(Target(f"Mixed over records, theta {theta}: ms, at most", _median(merged, samples.plan_ms), 5.0))
        error = max(merged.values(samples.estimate_error)) if merged else None
        targets.append(Target(f"Mixed over records, theta {theta}: largest error, at most", error, 0.01))
    return targets


def cores(series: Sequence[Series]) -> list[Target]:
    """Targets of `cores`: at most 0.5 ms, and never more state moved than by the published algorithm."""
    targets = []
    for nodes in (8, 16, 32):
        plans = find(series, call=f"{nodes} nodes")
        targets.append(Target(f"{nodes} nodes: ms, at most", _median(plans, samples.plan_ms), 0.5))
        worst = max(plans.values(samples.cost_over_published)) if plans else None
        targets.append(Target(f"{nodes} nodes: state moved over the published algorithm's, at most", worst, 1.0))
    return targets


def refine(series: Sequence[Series]) -> list[Target]:
    """Targets of `refine`: at most 1 ms."""
    plans = find(series, call="8192 shards, 256 tasks")
    return [Target("8,192 shards on 256 tasks: ms, at most", _median(plans, samples.plan_ms), 1.0)]


def loop(series: Sequence[Series]) -> list[Target]:
    """Targets of `loop`: at most 5 ms with 256 shards and 20 ms with 4,096 shards, for every kind of plan."""
    targets = []
    for shards, most in (("256", 5.0), ("4096", 20.0)):
        calls = [s for s in series if s.labels["call"].endswith(f", {shards} shards")]
        slowest = max((m for s in calls if (m := _median(s, samples.plan_ms)) is not None), default=None)
        targets.append(Target(f"{shards} shards, slowest plan: ms, at most", slowest, most))
    return targets


def move(series: Sequence[Series]) -> list[Target]:
    """Targets of `move`, by the size of the shard.

    A move inside an executor takes at most 0.1 ms. A shard of 32 KB moves in 2 ms. A shard of 32 MB moves with 2 GB/s
    by the transport local, 1 GB/s by mpi, and 10 times as fast as through a checkpoint.
    """

    def ms(call: str) -> float | None:
        ns = _median(find(series, call=call), samples.call_ns)
        return None if ns is None else ns / 1e6

    def gigabytes_per_s(call: str) -> float | None:
        took = ms(call)
        return None if took is None else (32 << 20) / took / 1e6

    def times_as_fast(checkpoint: str, description: str) -> Target:
        found = _ratio(ms(f"32 MB through {checkpoint}, default file manager"), ms("32 MB by local"))
        name = f"32 MB by local: times as fast as through {description}, default file manager, at least"
        return Target(name, found, 10.0, at_least=True)

    return [
        Target("32 MB inside an executor: ms, at most", ms("32 MB inside an executor"), 0.1),
        Target("32 KB by local: ms, at most", ms("32 KB by local"), 2.0),
        Target("32 KB by mpi: ms, at most", ms("32 KB by mpi"), 2.0),
        Target("32 MB by local: GB/s, at least", gigabytes_per_s("32 MB by local"), 2.0, at_least=True),
        Target("32 MB by mpi: GB/s, at least", gigabytes_per_s("32 MB by mpi"), 1.0, at_least=True),
        times_as_fast("plain Spark's checkpoint, HDFS-backed", "plain Spark's checkpoint as it comes (HDFS-backed)"),
        times_as_fast("plain Spark's checkpoint, RocksDB", "plain Spark's checkpoint with RocksDB"),
        times_as_fast("the checkpoint", "Penstock's own checkpoint"),
    ]


def ring(series: Sequence[Series]) -> list[Target]:
    """Targets of `ring`: 10 GB/s in each direction, and a wake-up in 20 us, which is half of a round trip."""

    def gigabytes_per_s(call: str) -> float | None:
        ns = _median(find(series, call=call), samples.call_ns)
        return None if ns is None else (64 << 20) / ns

    round_trip_ns = _median(find(series, call="a byte and back"), samples.call_ns)
    return [
        Target("64 MiB to Python: GB/s, at least", gigabytes_per_s("64 MiB to Python"), 10.0, at_least=True),
        Target("64 MiB from Python: GB/s, at least", gigabytes_per_s("64 MiB from Python"), 10.0, at_least=True),
        Target("wake-up: us, at most", None if round_trip_ns is None else round_trip_ns / 2e3, 20.0),
    ]


def join_executor(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Target of `join-executor`: in the second batch after it joined, an executor has 90 % of its share, one fifth."""
    targets = []
    for manager in managers:
        ours = find(series, manager=manager, side="penstock")
        shares = ours.values(samples.newcomer) if ours else []
        targets.append(
            Target(
                "what the newcomer carries in the second batch, over its share, at least",
                5 * shares[1] if len(shares) > 1 else None,
                0.9,
                at_least=True,
            )
        )
    return targets


def sidecar(series: Sequence[Series], managers: Iterable[str]) -> list[Target]:
    """Targets of `sidecar`: 1 % of a core when idle, and 10 % slower batches if all are killed every second."""
    idle = find(series, sidecars="idle")
    shares = idle.values(samples.processor_share) if idle else []
    targets = [Target("an idle sidecar: share of a core, at most", max(shares, default=None), 0.01)]
    for manager in managers:
        alone, killed = (
            _median(find(series, manager=manager, sidecars=phase), samples.batch_ms) for phase in ("alone", "killed")
        )
        targets.append(Target("batch time while sidecars are killed, at most", _ratio(killed, alone), 1.1))
    return targets


Measures = Sequence[tuple[str, str, Measure]]

#: Measures that are reported for every case of a benchmark: name, unit and function.
MEASURES: dict[str, Measures] = {
    "overhead": [
        ("batch", "ms", samples.batch_ms),
        ("addBatch", "ms", samples.add_batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("processor time", "ms", samples.processor_ms),
    ],
    "barrier": [
        ("stateful stage", "ms", samples.stage_ms),
        ("batch", "ms", samples.batch_ms),
        ("busiest task over mean", "ratio", samples.imbalance),
        ("shards that change task", "share", samples.moved),
    ],
    "skew": [
        ("batch", "ms", samples.batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("of perfect balance", "share", samples.of_perfect_balance),
        ("dearest key over a fair share", "ratio", samples.dearest_key),
        ("shards that change task", "share", samples.moved),
    ],
    "latency": [("from arrival to the end of the batch", "ms", samples.latency_ms)],
    "hotkey": [
        ("batch", "ms", samples.batch_ms),
        ("busiest task over mean, in the batch of a change", "ratio", samples.changed_imbalance),
        ("busiest task over mean, from two batches later", "ratio", samples.settled_imbalance),
    ],
    "grow": [
        ("batch", "ms", samples.batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
    ],
    "uniform": [
        ("batch", "ms", samples.batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("shards that change task", "share", samples.moved),
    ],
    "busy": [
        ("batch", "ms", samples.batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("shards that change task", "share", samples.moved),
    ],
    "unrouted": [
        ("batch", "ms", samples.batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("processor time", "ms", samples.processor_ms),
    ],
    "observe": [
        ("batch", "ms", samples.batch_ms),
        ("addBatch", "ms", samples.add_batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("processor time", "ms", samples.processor_ms),
    ],
    "barrier-cost": [
        ("batch", "ms", samples.batch_ms),
        ("addBatch", "ms", samples.add_batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("processor time", "ms", samples.processor_ms),
    ],
    "recover": [
        ("from start to the end of the first batch", "ms", samples.start_ms),
        ("first batch", "ms", samples.batch_ms),
    ],
    "large": [
        ("batch", "ms", samples.batch_ms),
        ("addBatch", "ms", samples.add_batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
        ("processor time", "ms", samples.processor_ms),
    ],
    "rescale": [
        ("batch", "ms", samples.batch_ms),
        ("first batch after a change", "ms", samples.changed_batch_ms),
        ("stateful stage", "ms", samples.stage_ms),
    ],
    "check": [
        ("batch", "ms", samples.batch_ms),
        ("accesses", "calls", samples.accesses),
        ("with a checksum", "bytes", samples.checked_bytes),
        ("time", "ns", samples.call_ns),
    ],
    "plan": [
        ("time", "ms", samples.plan_ms),
        ("imbalance", "ratio", samples.planned_imbalance),
        ("error", "ratio", samples.estimate_error),
        ("records", "number", samples.records),
    ],
    "cores": [
        ("time", "ms", samples.plan_ms),
        ("state moved over the published algorithm's", "ratio", samples.cost_over_published),
    ],
    "move": [
        ("time", "ms", samples.call_ms),
    ],
    "join-executor": [
        ("rows that the newcomer had", "share", samples.newcomer),
        ("batch", "ms", samples.batch_ms),
    ],
    "sidecar": [
        ("batch", "ms", samples.batch_ms),
        ("processor", "share of a core", samples.processor_share),
    ],
    "ring": [
        ("time", "ms", samples.call_ms),
    ],
    "loop": [
        ("time", "ms", samples.plan_ms),
    ],
    "refine": [
        ("time", "ms", samples.plan_ms),
        ("imbalance", "ratio", samples.planned_imbalance),
        ("moves", "number", samples.moves),
    ],
    "store": [
        ("time", "ns", samples.call_ns),
        ("beyond key and value", "bytes", samples.entry_bytes),
    ],
}
