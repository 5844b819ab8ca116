"""Check whether this machine has what Penstock needs, and show what is switched off, why, and what that costs.

The exit status is 1 if something is wrong. A feature that is switched off is not an error.
"""

import argparse
import json
from dataclasses import asdict

from penstock.diagnosis.judgement import Judgement, State, judge
from penstock.diagnosis.machine import look
from penstock.diagnosis.security import encryption_lacks, judge_security


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--security",
        action="store_true",
        help="check which protections of SECURITY.md the settings in spark-defaults.conf enable",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Inspect this machine, judge it and print the judgements."""
    machine = look()
    judgements = judge_security(machine) if arguments.security else [*judge(machine), *encryption_lacks(machine)]
    if arguments.json:
        print(json.dumps({"judgements": [{**asdict(j), "state": j.state.value} for j in judgements]}, indent=1))
    else:
        print("\n".join(map(_line, judgements)))
    return 1 if any(j.state is State.WRONG for j in judgements) else 0


def _line(judgement: Judgement) -> str:
    lines = [f"{judgement.state.value:<5}  {judgement.what:<17}  {judgement.found}"]
    lines += [f"{'':26}costs: {judgement.costs}"] if judgement.costs else []
    lines += [f"{'':26}{judgement.remedy}"] if judgement.remedy else []
    return "\n".join(lines)
