#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures Sealpoint beside other ways to save a training, in alternating rounds (docs/evidence/benchmarks.md). Called as
#   scripts/benchmarks.sh peers [ARGUMENT...]
# Builds the Python package in build/python, and puts what python/requirements-peers.txt names into build/peers-packages; a
# package that pip cannot get is said to be absent, and its peer is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
python=build/venv/bin/python
packages=build/peers-packages

scripts/python_env.sh
cmake --preset python >build/python.configure.log || { cat build/python.configure.log; exit 1; }
cmake --build build/python --target sealpoint_python

if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "no torch in build/venv: without it no peer can be measured" >&2
  exit 1
fi
stamp=$({ "$python" --version; cat python/requirements-peers.txt; } | sha256sum)
if [ "$stamp" != "$(cat "$packages/stamp" 2>/dev/null || true)" ]; then
  rm -rf "$packages"
  mkdir -p "$packages"
  complete=1
  while read -r line; do
    case $line in \#* | '') continue ;; esac
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target "$packages" "$line" || {
      echo "pip cannot get $line"
      complete=0
    }
  done <python/requirements-peers.txt
  # Else the next run tries again.
  [ "$complete" -eq 0 ] || echo "$stamp" >"$packages/stamp"
fi
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$PWD/build/python/python:$PWD/benchmarks/python:$PWD/$packages exec "$python" -m peers "$@"
