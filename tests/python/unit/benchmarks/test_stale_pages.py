"""Published results are stale once what they measured has changed."""

import json
import subprocess

import pytest
from penstock.benchmarks import revision


@pytest.fixture
def checkout(tmp_path):
    """Return a repository with one source file, and a function that commits a change to it."""

    def git(*words):
        done = subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True, text=True)  # noqa: S607
        return done.stdout.strip()

    def change(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        git("add", "-A")
        git("commit", "-qm", path)

    git("init", "-q")
    for name, value in (("user.name", "test"), ("user.email", "test@invalid")):
        git("config", name, value)
    change("jvm/src/main/a.scala", "1")
    return tmp_path, change


def reasons(root):
    return {found.page.stem: found.reason for found in revision.stale(root, root / "benchmarks/results")}


def test_pages_are_stale_if_the_measured_code_has_changed(checkout):
    root, change = checkout
    commit = revision.of(root, "overhead")
    change("benchmarks/results/overhead.json", json.dumps({"name": "overhead --op join", "commit": commit}))
    change("benchmarks/results/plan.json", json.dumps({"name": "plan", "commit": commit}))
    change("README.md", "words")
    assert reasons(root) == {}
    change("jvm/src/main/a.scala", "2")
    assert reasons(root) == {"overhead": f"1 commits since {commit} have changed what it measures"}
    change("python/penstock/planning/b.py", "1")
    assert set(reasons(root)) == {"overhead", "plan"}


def test_pages_without_a_known_commit_are_stale(checkout):
    root, change = checkout
    (root / "jvm/src/main/a.scala").write_text("not committed")
    dirty = revision.of(root, "overhead")
    change("benchmarks/results/dirty.json", json.dumps({"name": "overhead", "commit": dirty}))
    change("benchmarks/results/none.json", json.dumps({"name": "overhead"}))
    change("benchmarks/results/other.json", json.dumps({"name": "overhead", "commit": "0123456789ab"}))
    found = reasons(root)
    assert "not committed" in found["dirty"]
    assert found["none"] == "it names no commit"
    assert found["other"] == "commit 0123456789ab is not in this checkout"
    assert revision.of(None, "plan") == revision.UNKNOWN
