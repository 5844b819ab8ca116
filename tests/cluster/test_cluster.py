"""A query on a real standalone cluster with failures: every row is counted exactly once."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from eventually import eventually
from namespaces import can_be_made, namespaces
from standalone import PATIENCE_S, Application, Standalone, kill

pytestmark = pytest.mark.skipif(bool(can_be_made()), reason=can_be_made())
SIDECAR, EXECUTOR = "-m penstock.sidecars.transfer", "CoarseGrainedExecutorBackend"
TRAVELLED, LOADED = "penstockShardsTravelled", "penstockShardsLoaded"
IN_MEMORY, FOLDED = "penstockShardsInMemory", "penstockShardsFolded"
KILLS_S = 20 if os.environ.get("PENSTOCK_TEST_BRIEF") else 300
"""Time for which sidecars are killed every second, in seconds."""
AHEAD = "ahead"
"""Metric: shards that were moved ahead of the tasks that need them, which the policy causes in every other batch."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with namespaces(2) as places:
        made = Standalone(places, folder)
        yield made
        made.close()


@pytest.fixture
def application(cluster, tmp_path):
    made = Application(cluster, tmp_path)
    yield made
    made.close()
    eventually(
        lambda: not cluster.processes(SIDECAR) and not cluster.processes(EXECUTOR),
        timeout_s=30,
        what="no process of the application is left",
    )
    # Other applications of this machine may use such files for a moment.
    eventually(
        lambda: not list(Path("/dev/shm").glob("penstock*")),  # noqa: S108
        timeout_s=30,
        what="no shared memory of the application is left",
    )


def warm(application):
    """Run batches until shards travel, because sidecars start in parallel with executors."""
    eventually(lambda: application.batch()[TRAVELLED] > 0, timeout_s=PATIENCE_S, what="shards travel in a batch")


def test_shards_travel_between_hosts(application):
    warm(application)
    batches = [application.batch() for _ in range(20)]
    assert all(batch[TRAVELLED] + batch[AHEAD] > 10 for batch in batches), batches
    assert all(batch[LOADED] == 0 for batch in batches), batches
    assert any(batch[AHEAD] > 10 for batch in batches), batches


def test_a_query_survives_killed_executors(application, cluster):
    warm(application)
    for _ in range(2):
        kill(cluster.processes(EXECUTOR)[:1])
        assert [application.batch() for _ in range(3)]
    warm(application)


def test_decommissioned_executors_hand_their_shards_over(application, cluster):
    warm(application)
    # The second time, the driver still knows the address of the executor that ended first.
    for number in range(2):
        leaving = cluster.processes(EXECUTOR)[number % 2]
        os.kill(leaving, signal.SIGPWR)
        eventually(lambda pid=leaving: pid not in cluster.processes(EXECUTOR), timeout_s=60, what="the executor ends")
        metrics = application.batch()
        assert metrics[LOADED] == 0, (metrics, cluster.log_lines("LeavingExecutor"))
        assert metrics[TRAVELLED] + metrics[IN_MEMORY] + metrics[FOLDED] >= 64, metrics
        warm(application)


def test_a_query_survives_sidecars_that_are_killed_every_second(application, cluster):
    warm(application)
    over = threading.Event()

    def strike():
        while not over.wait(1.0):
            kill(cluster.processes(SIDECAR))

    killer = threading.Thread(target=strike)
    killer.start()
    until = time.monotonic() + KILLS_S
    while time.monotonic() < until:
        application.batch()
    over.set()
    killer.join()
    warm(application)


def test_a_query_survives_a_link_that_is_cut_and_restored(application, cluster):
    warm(application)
    cluster.places[0].cut()
    joiner = threading.Timer(8.0, cluster.places[0].join)
    joiner.start()
    for _ in range(3):
        application.batch()
    joiner.join()
    warm(application)
