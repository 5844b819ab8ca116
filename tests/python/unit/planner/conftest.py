"""A planner's server in this process, and its client."""

import socket
import threading

import pytest
from driver_end import Client
from penstock.sidecars.planner.frame import BrokenFrameError
from penstock.sidecars.planner.planner import Planner
from penstock.sidecars.planner.server import serve
from planner_messages import TOKEN


@pytest.fixture
def served():
    """Yield a client of a served connection, and a list that gets the error that ended it."""
    ours, theirs = socket.socketpair()
    ended = []

    def run():
        try:
            serve(theirs, TOKEN, Planner())
            ended.append(None)
        except (BrokenFrameError, OSError) as error:
            ended.append(error)
        finally:
            theirs.close()

    thread = threading.Thread(target=run)
    thread.start()
    ours.settimeout(20)
    yield Client(ours), ended
    ours.close()
    thread.join(20)
    assert ended
