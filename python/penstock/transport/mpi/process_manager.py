"""A process manager for a single process, which lets MPICH start without ``mpiexec``.

MPICH asks its process manager, over an inherited socket, for its rank, the number of processes and a place to publish
its address (PMI-1). For one process there are few answers. A separate process gives them, because ``MPI_Init`` blocks
Python's other threads. It ends with the process that it serves.
"""

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping


def start() -> None:
    """Start the process manager, and set the library's environment. Must be called before ``MPI_Init``.

    Raises
    ------
    OSError
        The process cannot be started.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    # The library writes to the socket when the process ends, so it stays open until then.
    os.environ.update(PMI_FD=str(ours.detach()), PMI_RANK="0", PMI_SIZE="1", PMI_SPAWNED="0")
    os.environ.pop("PMI_PORT", None)


class Answers:
    """Answers to the questions of a single process.

    Parameters
    ----------
    world
        Unique name of the process's world.
    """

    def __init__(self, world: str) -> None:
        self._world = world
        self._published: dict[str, str] = {}

    def to(self, question: str) -> str:
        """Answer a line, which is given without its end."""
        # A value is the last field, and may hold spaces.
        words, _, value = question.partition(" value=")
        fields = dict(word.split("=", 1) for word in words.split() if "=" in word)
        command = fields.get("cmd", fields.get("mcmd", ""))
        answer = self._fixed(command, fields)
        if answer is not None:
            return answer
        key = fields.get("key", "")
        if command == "put":
            self._published[key] = value
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            found = "(vector,(0,1,1))" if key == "PMI_process_mapping" else self._published.get(key)
            if found is None:
                return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
            return f"cmd=get_result rc=0 msg=success value={found}"
        return f"cmd={command}_result rc=-1 msg=unsupported"

    def _fixed(self, command: str, fields: Mapping[str, str]) -> str | None:
        version, subversion = fields.get("pmi_version", "1"), fields.get("pmi_subversion", "1")
        return {
            "init": f"cmd=response_to_init pmi_version={version} pmi_subversion={subversion} rc=0",
            "get_maxes": "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_appnum": "cmd=appnum rc=0 appnum=0",
            "get_universe_size": "cmd=universe_size rc=0 size=1",
            "get_my_kvsname": f"cmd=my_kvsname rc=0 kvsname={self._world}",
            "barrier_in": "cmd=barrier_out rc=0",
            "finalize": "cmd=finalize_ack rc=0",
        }.get(command)


def main(descriptor: int) -> None:
    """Answer until the other side closes the connection."""
    answers = Answers(f"penstock_{uuid.uuid4().hex[:20]}")
    with socket.socket(fileno=descriptor) as connection, connection.makefile("r", newline="\n") as lines:
        for line in lines:
            connection.sendall(f"{answers.to(line.rstrip())}\n".encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
