"""Size of the routing table, and the cost of limiting it: figures 17 to 21 of Fang et al."""

from statistics import fmean

from penstock.charts.chart import Chart, Line
from penstock.reproduction.effort import Effort
from penstock.reproduction.experiment import Claim, Experiment
from penstock.reproduction.fang.intervals import (
    INSTANCES,
    KEYS,
    THETA,
    Intervals,
    migrated,
    min_migration_planner,
    min_table_planner,
    mixed_planner,
    play,
)

PER_CENT = 100


def bound(effort: Effort) -> Experiment:
    """Figure 17."""
    sizes = (25, 50, 100, 200, 400, 800, 1_600, 3_200)
    thetas = (0.02, 0.08, 0.15)
    count = 3 * effort.intervals
    moved = {
        theta: [migrated(play(Intervals(seed=effort.seed), mixed_planner(theta, size), count)) for size in sizes]
        for theta in thetas
    }
    least = {theta: migrated(play(Intervals(seed=effort.seed), min_table_planner(theta), count)) for theta in thetas}
    return Experiment(
        name="fang-17",
        title="Figure 17: what a small table costs",
        method=f"Mixed, K = {KEYS:,}, {INSTANCES} instances, f = 1, w = 1, {count} intervals.",
        claims=[
            Claim(
                f"a table too small moves as much as MinTable, theta {theta}",
                "large",
                f"{moved[theta][0]:.1%} with {sizes[0]} entries, MinTable {least[theta]:.1%}",
                moved[theta][0] > 0.8 * least[theta],
            )
            for theta in thetas
        ]
        + [
            Claim(
                f"a larger one moves less, theta {theta}",
                "decreases greatly",
                f"{moved[theta][-1]:.1%} with {sizes[-1]:,} entries",
                moved[theta][-1] < 0.7 * moved[theta][0],
            )
            for theta in thetas
        ],
        charts=[
            Chart(
                "table, entries",
                "state moved, per cent",
                [Line(f"theta {theta}", sizes, [PER_CENT * m for m in moved[theta]]) for theta in thetas],
                log_x=True,
            )
        ],
    )


def growth(effort: Effort) -> Experiment:
    """Figure 18."""
    thetas = (0.0, 0.02, 0.08, 0.3)
    tables = {
        theta: [p.table for p in play(Intervals(seed=effort.seed), min_migration_planner(theta), effort.adjustments)]
        for theta in thetas
    }
    limit = KEYS * (INSTANCES - 1) / INSTANCES
    early, last = ({theta: tables[theta][at] for theta in thetas} for at in (effort.adjustments // 10 - 1, -1))
    step = max(1, effort.adjustments // 200)
    adjustments = list(range(1, effort.adjustments + 1, step))
    return Experiment(
        name="fang-18",
        title="Figure 18: the table of MinMig grows",
        method=f"MinMig, K = {KEYS:,}, {INSTANCES} instances, f = 1, {effort.adjustments:,} plans one after the other.",
        claims=[
            Claim(
                "the table converges to K (N - 1) / N entries",
                f"about 9,350; {limit:,.0f} by the formula",
                f"{last[0.0]:,} with theta 0",
                0.9 * limit <= last[0.0] <= limit * 1.02,
            ),
            Claim(
                "a smaller theta fills it faster",
                "yes",
                f"after {effort.adjustments // 10} plans "
                + ", ".join(f"{n:,} with {theta:g}" for theta, n in early.items()),
                sorted(early.values(), reverse=True) == list(early.values()),
            ),
            Claim(
                "all of them converge to the same size",
                "yes",
                ", ".join(f"{n:,} with {theta:g}" for theta, n in last.items()),
                min(last.values()) >= 0.9 * limit,
            ),
        ],
        charts=[
            Chart(
                "plans",
                "table, entries",
                [Line(f"theta {theta:g}", adjustments, tables[theta][::step]) for theta in thetas],
            )
        ],
    )


def window(effort: Effort) -> Experiment:
    """Figure 19."""
    windows = (1, 5, 10, 15, 20)
    moved = {
        name: [migrated(play(Intervals(window=w, seed=effort.seed), planner, effort.intervals)) for w in windows]
        for name, planner in (("Mixed", mixed_planner()), ("MinTable", min_table_planner()))
    }
    return Experiment(
        name="fang-19",
        title="Figure 19: state of a longer window",
        method=f"K = {KEYS:,}, {INSTANCES} instances, theta {THETA}, f = 1, {effort.intervals} intervals.",
        claims=[
            Claim(
                "Mixed moves less than MinTable with every window",
                "yes",
                ", ".join(f"{a:.1%} and {b:.1%} (w = {w})" for w, a, b in zip(windows, *moved.values(), strict=True)),
                all(a < b for a, b in zip(*moved.values(), strict=True)),
            ),
        ],
        charts=[
            Chart(
                "window w, intervals",
                "state moved, per cent",
                [Line(name, windows, [PER_CENT * m for m in values]) for name, values in moved.items()],
            )
        ],
    )


def weight(effort: Effort) -> Experiment:
    """Figures 20 and 21."""
    betas = [1.0 + 0.1 * i for i in range(11)]
    count, window = 10, 5
    thetas = (0.02, 0.08, 0.15)
    tables, moved = {}, {}
    for theta in thetas:
        runs = [
            play(Intervals(window=window, seed=effort.seed), min_migration_planner(theta, beta), count)
            for beta in betas
        ]
        tables[theta] = [fmean(plan.table for plan in run) for run in runs]
        moved[theta] = [PER_CENT * migrated(run) for run in runs]
    return Experiment(
        name="fang-20-21",
        title="Figures 20 and 21: cost against memory, beta",
        method=f"MinMig, K = {KEYS:,}, {INSTANCES} instances, f = 1, w = {window}, means over {count} plans.",
        claims=[
            Claim(
                "a larger beta makes the table smaller",
                "yes",
                ", ".join(f"{tables[t][0]:,.0f} to {tables[t][-1]:,.0f} (theta {t})" for t in thetas),
                all(tables[t][-1] < tables[t][0] for t in thetas),
            ),
            Claim(
                "and moves more state",
                "yes",
                ", ".join(f"{moved[t][0]:.1f} to {moved[t][-1]:.1f} % (theta {t})" for t in thetas),
                all(moved[t][-1] > moved[t][0] for t in thetas),
            ),
        ],
        charts=[
            Chart("beta", "table, entries", [Line(f"theta {t}", betas, tables[t]) for t in thetas]),
            Chart("beta", "state moved, per cent", [Line(f"theta {t}", betas, moved[t]) for t in thetas]),
        ],
        remark=(
            "With w = 1 a key's state is as large as its cost here: then every beta above 1 gives the same order of "
            "keys."
        ),
    )
