"""Description of the machine that a benchmark ran on, without names of hosts or users."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def describe() -> str:
    """Return processor, memory and kernel in one line."""
    processor = _first(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo")) or platform.machine()
    memory = _first(r"MemTotal:\s*(\d+) kB", Path("/proc/meminfo"))
    size = f", {int(memory) / 2**20:.0f} GiB" if memory else ""
    cores = os.cpu_count() or 1
    return f"{cores} cores of {processor}{size}, {platform.system()} {platform.release()}"


def _first(pattern: str, file: Path) -> str | None:
    if not file.is_file():
        return None
    found = re.search(pattern, file.read_text())
    return found.group(1).strip() if found else None
