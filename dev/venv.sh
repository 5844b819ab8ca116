#!/usr/bin/env bash
# Makes a virtual environment with PySpark, everything that tests and lint need, and this package (editable).
# usage: dev/venv.sh FOLDER PYSPARK_VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
spark=$2

[[ -x $folder/bin/python ]] || "${PYTHON3:-python3}" -m venv "$folder"
pip() { "$folder/bin/python" -m pip --disable-pip-version-check --quiet "$@" </dev/null; }
pip install -r dev/requirements.txt
# PySpark is published as source only; it is built with the setuptools of the line above.
pip install --no-build-isolation "pyspark==$spark"
pip install --no-build-isolation --no-deps --editable .
cat dev/requirements.txt >"$folder/installed-requirements.txt"
