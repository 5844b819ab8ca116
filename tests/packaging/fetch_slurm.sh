#!/usr/bin/env bash
# Unpacks SLURM and munge from Debian's packages into .work/slurm, and prints that folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
. dev/debian.sh
mapfile -t packages < <(missing_packages slurm-wlm munge)
fetch "$PWD/.work/slurm" "${packages[@]}"
# Debian's alternatives create these links during an installation.
for program in "$PWD/.work/slurm/usr/sbin"/*-wlm; do ln -sf "${program##*/}" "${program%-wlm}"; done
echo "$PWD/.work/slurm"
