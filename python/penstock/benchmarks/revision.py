"""Find out which commit was measured and whether the measured code has changed since, with git."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

UNKNOWN = "unknown"
CHANGED = "+changes"
"""Suffix of the commit if the checkout had uncommitted changes."""
PLANNERS = ("plan", "cores", "refine")
_PLANNING = ("python/penstock/planning", "python/penstock/benchmarks/planners.py")
_PRODUCT = (
    "build.sbt",
    "jvm/src/main",
    "plugin",
    "python/penstock/sidecars",
    "python/penstock/planning",
    "python/penstock/transport",
    "benchmarks/src",
    "benchmarks/python",
)


@dataclass(frozen=True)
class Stale:
    """A page of results that was not measured with the current code.

    Parameters
    ----------
    page
        File of the page.
    reason
        Why the page is stale.
    """

    page: Path
    reason: str


def measured_paths(bench: str) -> tuple[str, ...]:
    """Return the paths in the checkout of the code that a benchmark measures."""
    return _PLANNING if bench in PLANNERS else _PRODUCT


def of(root: Path | None, bench: str) -> str:
    """Return the commit that is measured.

    Parameters
    ----------
    root
        Folder of the checkout, or None.
    bench
        Name of the benchmark, which determines the measured code.
    """
    commit = None if root is None else _git(root, "rev-parse", "--short=12", "HEAD")
    if root is None or commit is None:
        return UNKNOWN
    return commit + (CHANGED if _git(root, "status", "--porcelain", "--", *measured_paths(bench)) else "")


def stale(root: Path, results: Path) -> Iterator[Stale]:
    """Yield the pages whose measured code has changed since they were written."""
    for page in sorted(results.glob("*.json")):
        reason = _reason(root, json.loads(page.read_text()))
        if reason is not None:
            yield Stale(page, reason)


def _reason(root: Path, result: dict[str, str]) -> str | None:
    commit = result.get("commit", UNKNOWN)
    if commit == UNKNOWN:
        return "it names no commit"
    if commit.endswith(CHANGED):
        return f"commit {commit.removesuffix(CHANGED)} was measured with changes that were not committed"
    paths = measured_paths(result["name"].partition(" ")[0])
    since = _git(root, "rev-list", "--count", f"{commit}..HEAD", "--", *paths)
    if since is None:
        return f"commit {commit} is not in this checkout"
    return f"{since} commits since {commit} have changed what it measures" if since != "0" else None


def _git(root: Path, *words: str) -> str | None:
    command: Sequence[str] = ("git", "-C", str(root), *words)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
