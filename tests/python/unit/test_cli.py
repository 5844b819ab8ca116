"""The command line and the settings that it lists."""

import subprocess
import sys
from pathlib import Path

import penstock
import pytest
from penstock import cli
from penstock.api.settings import settings


def test_the_version_of_the_package_is_that_of_the_project():
    assert penstock.__version__ == (Path(__file__).parents[3] / "VERSION").read_text().strip()


def test_config_lists_every_setting(capsys):
    assert cli.main(["config"]) == 0
    printed = capsys.readouterr().out
    assert len(settings()) > 0
    for setting in settings():
        assert f"{setting.key} = {setting.default}" in printed
        assert setting.allowed in printed


def test_config_filters_by_key(capsys):
    assert cli.main(["config", "theta"]) == 0
    assert "spark.penstock.shards" not in capsys.readouterr().out
    assert cli.main(["config", "no such key"]) == 1


def test_every_key_has_its_prefix_and_option():
    for setting in settings():
        assert setting.key == f"spark.{setting.option}"
        assert setting.option.startswith("penstock.")


def test_errors_are_printed_and_set_the_status(capsys):
    assert cli.main(["jar", "--spark", "1.0.0"]) == 2
    assert "[PENSTOCK_UNSUPPORTED_SPARK]" in capsys.readouterr().err


def test_jar_prints_an_existing_path(capsys):
    assert cli.main(["jar"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == f"penstock {penstock.__version__}"


def test_unknown_commands_are_refused():
    with pytest.raises(SystemExit) as caught:
        cli.main(["no-such-command"])
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "arguments", [["reproduce", "fang", "--out", "out"], ["simulate", "trace.csv", "--png", "picture.png"]]
)
def test_pictures_need_matplotlib(arguments):
    """Run in a new process, because imported modules stay loaded."""
    code = "import sys; sys.modules['matplotlib'] = None; from penstock.cli import main; sys.exit(main(sys.argv[1:]))"
    completed = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert completed.returncode == 2
    assert "needs the package matplotlib" in completed.stderr
    assert "pip install 'penstock[pictures]'" in completed.stderr
