#!/bin/bash
# Runs on the driver and on every worker before Spark starts, as root: who may write to the folder of these files runs what they like
# on every node. Beside this script lie, of one release: the wheel, SHA256SUMS, requirements.txt, and the jar that `penstock jar` prints.
set -euo pipefail
files=${PENSTOCK_FILES:-/Volumes/main/default/penstock}
python=${PENSTOCK_PYTHON:-/databricks/python/bin/python}
jars=${PENSTOCK_JARS:-/databricks/jars}
pip=("$python" -m pip --disable-pip-version-check install --quiet --no-deps)

only() { # the one file of a kind
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
  # A copy that was cut off, or a file of another release.
  grep -E "^[0-9a-f]{64} [ *]$file\$" SHA256SUMS | sha256sum --check --quiet --strict || {
    echo "penstock: $files/$file is not the one that $files/SHA256SUMS names: copy the files of one release" >&2
    exit 1
  }
done
# Databricks brings its own Spark and NumPy, which must stay.
"${pip[@]}" --require-hashes -r requirements.txt
"${pip[@]}" "./$wheel"
cp "$jar" "$jars"/
