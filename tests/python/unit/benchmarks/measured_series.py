"""Made-up measurements, as a benchmark's program reports them."""

from penstock.benchmarks.samples import Series


def batch(ms, *, stage=0, rows=(1, 1), **more):
    durations = {"triggerExecution": ms, "addBatch": ms / 2}
    return {"ms": durations, "stage": stage, "processor": 7, "rows": list(rows), **more}


def series(batches, **labels):
    return Series(labels, batches)


def changes(*busiest, change):
    """Return batches after a change. Each value is the rows of the busier of two tasks over the mean."""
    return [batch(1, rows=[100 * b, 200 - 100 * b], change=change, sinceChange=i) for i, b in enumerate(busiest)]
