#!/bin/bash
# Runs as root on the driver and on every worker before Spark starts. Anybody who can write to the folder of these files
# can run any command on every node. The folder has these files of one release: this script, the wheel, SHA256SUMS,
# requirements.txt, and the jar whose path `penstock jar` prints.
set -euo pipefail
files=${PENSTOCK_FILES:-/Volumes/main/default/penstock}
python=${PENSTOCK_PYTHON:-/databricks/python/bin/python}
jars=${PENSTOCK_JARS:-/databricks/jars}
pip=("$python" -m pip --disable-pip-version-check install --quiet --no-deps)

only() { # kind, files: prints the file; fails if there is not exactly one
  local kind=$1
  shift
  [[ $# == 1 && -f $1 ]] || {
    echo "penstock: one $kind is expected in $files, found: $*" >&2
    exit 1
  }
  echo "$1"
}

cd "$files"
wheel=$(only wheel penstock-*.whl)
jar=$(only jar penstock-spark-*.jar)
for file in "$wheel" "$jar"; do
  # Detects an incomplete copy, or a file of another release.
  grep -E "^[0-9a-f]{64} [ *]$file\$" SHA256SUMS | sha256sum --check --quiet --strict || {
    echo "penstock: $files/$file is not the one that $files/SHA256SUMS names: copy the files of one release" >&2
    exit 1
  }
done
# Databricks has its own Spark and NumPy, which must not be replaced.
"${pip[@]}" --require-hashes -r requirements.txt
"${pip[@]}" "./$wheel"
cp "$jar" "$jars"/
