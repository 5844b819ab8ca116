#!/bin/bash
# Runs on the driver and on every worker before Spark starts. Beside it lie the wheel and the jar that `penstock jar` prints.
set -euo pipefail
files=${PENSTOCK_FILES:-/Volumes/main/default/penstock}
python=${PENSTOCK_PYTHON:-/databricks/python/bin/python}
jars=${PENSTOCK_JARS:-/databricks/jars}

wheel=$(echo "$files"/penstock-*.whl)
[[ -f $wheel ]] || {
  echo "penstock: one wheel is expected in $files, found: $wheel" >&2
  exit 1
}
# Databricks brings its own Spark and NumPy, which must stay.
"$python" -m pip install --quiet --no-deps "$wheel"
"$python" -m pip install --quiet google-crc32c numba
cp "$files"/penstock-spark-*.jar "$jars"/
