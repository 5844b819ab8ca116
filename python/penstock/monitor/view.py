"""Draw a driver's status in a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from penstock.monitor.document import Batch, Operator, PinnedKey, Query, Region, Shards, Status

LEVELS = "▁▂▃▄▅▆▇█"
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "bright_magenta")
MAX_SHARDS = 1024
"""Largest number of cells in a shard map. If there are more shards, a cell stands for several neighbouring ones."""
MAX_TASKS = 16
"""Largest number of bars for tasks. If there are more tasks, the busiest are shown."""
MAX_BUSY_SHARDS = 3
BAR_CELLS = 24
KIB = 1024


def view(status: Status) -> RenderableType:
    """Draw a status.

    Returns
    -------
    rich.console.RenderableType
        A line about the application and a panel for each query, with running queries first.
    """
    head = Text.assemble(
        (status.application, "bold"),
        f"  Spark {status.spark}, Penstock {status.penstock}, mode ",
        (status.mode, "bold"),
    )
    queries = sorted(status.queries, key=lambda query: query.ended)
    return Group(head, *(map(_query, queries) if queries else [Text("No streaming query has been started yet.")]))


def _query(query: Query) -> RenderableType:
    state = "failed" if query.exception else "ended" if query.ended else "running"
    title = f"[bold]{escape(query.name)}[/bold] {state}"
    return Panel(Group(*_lines(query)), title=title, title_align="left", border_style="dim" if query.ended else "")


def _lines(query: Query) -> Iterator[RenderableType]:
    if query.exception:
        yield Text(query.exception, style="red")
    if not query.batches:
        yield Text("No batch has run yet.")
        return
    newest = query.batches[-1]
    yield _throughput(query.batches)
    if newest.reason:
        yield Text(f"Penstock leaves the query alone: {newest.reason}")
    if newest.scaling:
        yield Text(f"executors: {newest.scaling}", style="dim")
    shards_by_region = {shards.region: shards for shards in query.shards}
    for region in newest.regions:
        shards = shards_by_region.get(region.region)
        yield from _region(region, shards, newest.batch)
        if shards is not None and len(shards.operators) > 1:
            yield _operators([o for o in newest.operators if o.operator in shards.operators])


def _throughput(batches: Sequence[Batch]) -> Table:
    newest = batches[-1]
    table = Table.grid(padding=(0, 2))
    table.add_row(
        f"batch {newest.batch}",
        f"{newest.rows_per_second:,.0f} rows/s",
        Text(sparkline([batch.rows_per_second for batch in batches]), style="green"),
        f"{newest.duration_ms:,} ms per batch",
        Text(sparkline([batch.duration_ms for batch in batches]), style="yellow"),
        f"state {newest.state_rows:,} rows, {bytes_in_words(newest.state_bytes)}",
    )
    return table


def _region(region: Region, shards: Shards | None, batch: int) -> Iterator[RenderableType]:
    tasks = counted(region.tasks, "task")
    moved = f"{region.shards_moved or 0} shards moved" if region.routed else "not routed"
    pinned = f", {counted(region.pinned, 'key')} pinned" if region.pinned else ""
    line = Text.assemble((region.operators, "bold"), f"  {tasks}, {moved}{pinned}")
    if region.decision_micros is not None:
        line.append(f", bound in {region.decision_micros / 1000:.1f} ms")
    yield line
    if region.expected is not None:
        yield _imbalance(region)
    yield Text(region.decision)
    if region.in_turn and region.in_turn != region.decision:
        yield Text(f"shards run in turn: {region.in_turn}", style="dim")
    if region.tasks_reason:
        yield Text(region.tasks_reason, style="dim")
    if region.executors and region.homes:
        yield Text(f"on {region.executors} executors: {region.homes}", style="dim")
    if region.heavy_keys:
        keys = (f"{k.key} {k.share:.1%} (shard {k.shard})" for k in region.heavy_keys)
        by = "time" if region.heavy_keys[0].by_time else "rows"
        yield Text(f"heavy keys by {by}: " + ", ".join(keys))
    if region.pinned_keys:
        yield Text("pinned keys: " + ", ".join(map(_pinned, region.pinned_keys)))
    if shards is not None:
        if shards.batch != batch:
            yield Text(f"shards of batch {shards.batch}:", style="dim")
        yield _tasks(shards)
        yield shard_map(shards)
        if any(shards.busy_ns):
            yield busiest_shards(shards)


def _pinned(key: PinnedKey) -> str:
    rows = counted(key.rows, "row") if key.seen else "never seen"
    return f"{key.key} (shard {key.shard}, {rows})"


def _operators(operators: Sequence[Operator]) -> Text:
    times = (f"{o.name} {o.rows_ms:,} ms, {counted(o.rows, 'row')}" for o in operators)
    return Text("time by operator: " + "; ".join(times))


def _imbalance(region: Region) -> Text:
    line = Text("imbalance: ")
    if region.before is not None:
        line.append(f"{region.before:.2f} before, ", style="dim")
    line.append(f"{region.expected:.2f} expected", style="bold")
    if region.achieved is not None:
        line.append(f", {region.achieved:.2f} achieved")
    elif region.busy_ms is not None:
        line.append(", tasks too short to measure what was achieved", style="dim")
    return line


def _tasks(shards: Shards) -> Table:
    load = load_of_tasks(shards)
    busiest = sorted(range(shards.tasks), key=lambda task: (-load[task], task))[:MAX_TASKS]
    most = max(1, *load)
    table = Table.grid(padding=(0, 1))
    for task in sorted(busiest):
        cells = round(BAR_CELLS * load[task] / most)
        bar = Text("█" * cells, style=colour(task)).append("░" * (BAR_CELLS - cells), style="dim")
        busy_ms, wait_ms = shards.tasks_busy_ns[task] / 1e6, shards.tasks_wait_ns[task] / 1e6
        row_ms = f"{load[task] / 1e6:,.0f} ms"
        table.add_row(f"task {task}", bar, row_ms, Text(f"of {busy_ms:,.0f} ms, waited {wait_ms:,.0f} ms", style="dim"))
    if shards.tasks > MAX_TASKS:
        table.add_row("", Text(f"and {shards.tasks - MAX_TASKS} tasks with less load", style="dim"))
    return table


def load_of_tasks(shards: Shards) -> list[int]:
    """Return the time that each task spent on rows, in ns."""
    load = [0] * shards.tasks
    for task, busy_ns in zip(shards.task_of, shards.busy_ns, strict=True):
        load[task] += busy_ns
    return load


def shard_map(shards: Shards) -> Text:
    """Draw a cell for each shard, with its task's colour and a height that shows its load."""
    shards_per_cell = -(-len(shards.task_of) // MAX_SHARDS)
    starts = range(0, len(shards.task_of), shards_per_cell)
    loads = [sum(shards.busy_ns[start : start + shards_per_cell]) for start in starts]
    text = Text("shards ")
    for start, level in zip(starts, sparkline(loads), strict=True):
        text.append(level, style=colour(shards.task_of[start]))
    return text


def busiest_shards(shards: Shards) -> Text:
    """List time, rows, keys and state operations of the busiest shards."""
    busiest = sorted(range(len(shards.busy_ns)), key=lambda shard: (-shards.busy_ns[shard], shard))[:MAX_BUSY_SHARDS]
    texts = (
        f"{s}: {shards.busy_ns[s] / 1e6:,.0f} ms, {counted(shards.rows[s], 'row')}, {counted(shards.keys[s], 'key')}, "
        f"{counted(shards.operations[s], 'state operation')}"
        for s in busiest
        if shards.busy_ns[s] > 0
    )
    return Text("busiest shards " + "; ".join(texts), style="dim")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def colour(task: int) -> str:
    """Return the colour of a task. It is the same in all parts of the view."""
    return COLOURS[task % len(COLOURS)]


def sparkline(values: Sequence[float]) -> str:
    """Draw values as blocks, scaled to the largest value.

    Returns
    -------
    str
        One character per value, which is a blank for 0.
    """
    largest = max(values, default=0)
    return "".join(LEVELS[min(7, int(8 * v / largest))] if v > 0 else " " for v in values)


def bytes_in_words(count: float) -> str:
    """Return a size with a binary unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < KIB:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= KIB
    return f"{count:,.1f} TiB"
