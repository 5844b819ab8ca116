"""Number of cores that one executor can keep busy: figure 13 of Elasticutor, as limited by the network."""

from penstock.charts.chart import Chart, Line
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Claim, Experiment

NETWORK_BITS_PER_S = 1e9
CORES = 256
COSTS_MS = (0.01, 0.1, 1.0, 10.0)
SIZES_BYTES = (128, 512, 2048, 8192)
USUAL_MS, USUAL_BYTES = 1.0, 128
FEW = 16
"""Number of cores that the paper's executor uses when the network is the limit."""


def useful_cores(cost_ms: float, tuple_bytes: int) -> float:
    """Return the number of cores that the network of one executor can supply with tuples.

    The main process receives all tuples, and sends those for remote tasks on. The network is full duplex, so the limit
    is what the process receives, which is the larger part.
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
        useful_cores(*case)
        for case in ((USUAL_MS, USUAL_BYTES), (USUAL_MS, SIZES_BYTES[-1]), (COSTS_MS[0], USUAL_BYTES))
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
