"""The code blocks of the user guide run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import guide_blocks
import pytest
from penstock import cli

GUIDE = Path(__file__).parents[3] / "docs/guide"
PAGES = sorted(GUIDE.glob("*.md"))
PYTHON = [name for page in PAGES for name, _ in guide_blocks.blocks(page)]
SHELL = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS = sorted(
    {
        command
        for page in PAGES
        for block in SHELL.findall(page.read_text())
        for command in re.findall(r"^penstock (\w+)", block, re.MULTILINE)
    }
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What became of each block; all run in one process with one JVM."""
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [sys.executable, guide_blocks.__file__, *map(str, PAGES)],
        cwd=tmp_path_factory.mktemp("guide"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_the_guide_has_python_blocks():
    assert PYTHON
    assert COMMANDS


@pytest.mark.parametrize("block", PYTHON)
def test_a_python_block_runs(results, block):
    assert results[block] is None, results[block]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_guide_exists(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"penstock {command}" in capsys.readouterr().out
