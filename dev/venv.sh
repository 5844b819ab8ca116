#!/usr/bin/env bash
# Creates a virtual environment with PySpark, all packages that tests and lint need, and this package (editable).
# usage: dev/venv.sh FOLDER PYSPARK_VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
spark=$2

[[ -x $folder/bin/python ]] || "${PYTHON3:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --disable-pip-version-check --quiet "$@" </dev/null; }
pip install -r dev/requirements.txt
# PySpark is published as source only. It is built with the setuptools that the line above installs.
pip install --no-build-isolation "pyspark==$spark"
pip install --no-build-isolation --no-deps --editable .
cat dev/requirements.txt >"$folder/installed-requirements.txt"
