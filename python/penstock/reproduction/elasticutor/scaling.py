"""How many cores one executor can keep busy: figure 13 of Elasticutor, as far as the network decides it."""

from penstock.charts.chart import Chart, Line
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Claim, Experiment

NETWORK_BITS_PER_S = 1e9
CORES = 256
COSTS_MS = (0.01, 0.1, 1.0, 10.0)
SIZES_BYTES = (128, 512, 2048, 8192)
USUAL_MS, USUAL_BYTES = 1.0, 128
FEW = 16
"""Cores that the paper's executor makes use of where the network is the limit."""


def useful_cores(cost_ms: float, tuple_bytes: int) -> float:
    """Give how many cores one executor's network feeds.

    All tuples come in through the main process, and those for remote tasks leave it again: what comes in is the
    larger part, and full duplex lets both go on side by side.
    """
    tuples_per_s = NETWORK_BITS_PER_S / (8 * tuple_bytes)
    return min(CORES, max(1.0, tuples_per_s * cost_ms / 1000))


def one_executor(_: Effort) -> Experiment:
    """Figure 13."""
    counts = [1 << n for n in range(CORES.bit_length())]

    def line(cost_ms: float, tuple_bytes: int) -> Line:
        name = f"{cost_ms:g} ms, {tuple_bytes} B"
        return Line(name, counts, [min(float(n), useful_cores(cost_ms, tuple_bytes)) for n in counts])

    usual, large, cheap = (
        useful_cores(*of) for of in ((USUAL_MS, USUAL_BYTES), (USUAL_MS, SIZES_BYTES[-1]), (COSTS_MS[0], USUAL_BYTES))
    )
    return Experiment(
        name="elasticutor-13",
        title="Figure 13: one executor on more and more cores",
        method=(
            "By counting: a network of 1 Gb/s to the node of the main process, through which all tuples come. "
            f"Speed over that of one core, with {USUAL_MS:g} ms and {USUAL_BYTES} B where not varied."
        ),
        claims=[
            Claim("it scales to the whole cluster", f"{CORES} cores", f"{usual:.0f} cores", usual >= CORES),
            Claim("not with very large tuples, 8 KB", f"{FEW} cores at most", f"{large:.1f} cores", large <= FEW),
            Claim("nor with very cheap ones, 0.01 ms", f"{FEW} cores at most", f"{cheap:.1f} cores", cheap <= FEW),
        ],
        charts=[
            Chart(
                "cores", "times as fast as one", [line(cost, USUAL_BYTES) for cost in COSTS_MS], log_x=True, log_y=True
            ),
            Chart(
                "cores", "times as fast as one", [line(USUAL_MS, size) for size in SIZES_BYTES], log_x=True, log_y=True
            ),
        ],
    )
