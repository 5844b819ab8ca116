#!/usr/bin/env python3
"""Runs Spark's own streaming and state suites with the Penstock plugin on.

`run.py --plugin-jar JAR` runs every suite of suites.tsv, `--part ci` those that CI runs, `--suite NAME` (repeatable)
chosen ones. Excluded tests (exclusions.tsv) run and are counted as skipped when they fail. The last line of the output
counts tests. Exit status: 0 all as expected; 1 a test failed, an excluded test passed, or a suite did not end; 2 the
suites could not be run.
"""

import argparse
import json
import signal
import sys
from pathlib import Path

import bed
import plan
import summary
from plan import Mode, Suite

import jvm

SPARK = "4.2.0"
"""The newest Spark whose test jars are published."""

PROVIDER = "io.penstock.PenstockStateStoreProvider"
STANDALONE = "org.apache.spark.sql.penstock.state.StandaloneProvider"
STORE = "ShardedStateStore"
PROVIDER_SETTING = "spark.sql.streaming.stateStore.providerClass"

PLUGIN_CONF = {"spark.plugins": "io.penstock.PenstockPlugin,ShufflePartitionsDecide"}

AGENT = {
    Mode.PLUGIN: "",
    Mode.LITERALS: f"literals={PROVIDER}",
    Mode.TYPES: f"types={PROVIDER},{STORE}",
    Mode.STANDALONE: f"types={STANDALONE},{STORE}",
}


def main() -> int:
    """Parses the command line, runs the suites, prints the results, and returns the exit status."""
    options = _options()
    # The exception also ends the JVM that runs the suites.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _run(options)
    except (bed.SetupError, plan.TableError) as error:
        print(f"spark-suites: {error}", file=sys.stderr)
        return 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--plugin-jar", type=lambda p: Path(p).resolve(), metavar="JAR", help="the assembled plugin")
    source.add_argument(
        "--stock", action="store_true", help="run without the plugin, to see whether a failure comes from Spark itself"
    )
    parser.add_argument("--part", choices=("ci", "all"), default="all")
    parser.add_argument("--suite", action="append", default=[], metavar="NAME", help="a suite of suites.tsv")
    parser.add_argument("--test", metavar="TEXT", help="run only tests whose name contains this")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="K=V", type=_setting, help="a further Spark setting (repeatable)"
    )
    parser.add_argument("--limit", type=int, default=900, metavar="S", help="seconds per suite (default: 900)")
    parser.add_argument("--heap", default="3g", help="heap of the test JVM (default: 3g)")
    parser.add_argument("--work", type=Path, default=bed.HERE / ".work", help="class paths, classes, logs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write counts, and failures with their messages")
    parser.add_argument("--record", action="store_true", help="write tests, passed and seconds into suites.tsv")
    options = parser.parse_args()
    if options.record and (options.test is not None or options.stock):
        parser.error("--record needs complete suites with the plugin on: remove --test and --stock")
    return options


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"expected spark.KEY=VALUE, found {text}")
    return key, value


def _run(options: argparse.Namespace) -> int:
    suites = _chosen(options)
    exclusions = plan.Exclusions({}) if options.stock else plan.read_exclusions(bed.HERE / "exclusions.tsv")
    made = bed.prepare(options.work.resolve(), SPARK)
    if options.plugin_jar is not None:
        if not options.plugin_jar.is_file():
            raise bed.SetupError(f"--plugin-jar is {options.plugin_jar}, which is not a file: build it with make jar")
        bed.compile_wrappers(made, options.plugin_jar)
    full = _full_names(made, suites)

    events = []
    for mode in Mode:
        names = [full[suite.name] for suite in suites if suite.mode is mode]
        if names:
            events += list(jvm.run(made, names, _settings(options, mode)))
    results = summary.judge(full.values(), events, exclusions)

    if options.record:
        ended = {name: results[f] for name, f in full.items() if results[f].state == "complete"}
        plan.record(bed.HERE / "suites.tsv", {name: (r.tests, r.passed, round(r.seconds)) for name, r in ended.items()})
    if options.json is not None:
        counts = {name: sum(getattr(r, name) for r in results.values()) for name in ("passed", "failed", "skipped")}
        failures = {name: result.failures for name, result in results.items() if result.failures}
        options.json.write_text(json.dumps(counts | {"failures": failures}, indent=1))
    print(summary.table(results))
    return 0 if all(result.good for result in results.values()) else 1


def _chosen(options: argparse.Namespace) -> list[Suite]:
    known = plan.read_suites(bed.HERE / "suites.tsv")
    if options.stock:
        known = [suite for suite in known if not (bed.WRAPPERS / f"{suite.name}.scala").exists()]
    unknown = set(options.suite) - {suite.name for suite in known}
    if unknown:
        raise plan.TableError(f"--suite names suites that are not in suites.tsv: {', '.join(sorted(unknown))}")
    if options.suite:
        return [suite for suite in known if suite.name in options.suite]
    return [suite for suite in known if suite.ci or options.part == "all"]


def _full_names(made: bed.Bed, suites: list[Suite]) -> dict[str, str]:
    index = made.index()
    missing = [suite.name for suite in suites if suite.name not in index]
    if missing:
        raise plan.TableError(f"suites.tsv names suites that Spark {SPARK} does not have: {', '.join(missing)}")
    return {suite.name: index[suite.name][0] for suite in suites}


def _settings(options: argparse.Namespace, mode: Mode) -> jvm.Settings:
    agent, conf = "", dict[str, str]()
    if options.plugin_jar is not None:
        agent, conf = AGENT[mode], dict(PLUGIN_CONF)
        if mode is Mode.STANDALONE:
            conf[PROVIDER_SETTING] = STANDALONE
    conf.update(options.conf)
    return jvm.Settings(options.plugin_jar, agent, conf, options.limit, options.heap, options.test)


if __name__ == "__main__":
    sys.exit(main())
