#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of frameworks with the newest released version of each, in place of those that python/requirements-*.txt pin, and
# says by name which of the interfaces in tests/python/interfaces.txt moved; by night, or on demand. torch is the pinned one:
# scripts/newest_torch.sh has the newest. Without a network nothing is run.
#   scripts/newest_frameworks.sh
# The packages, some 300 MB, stay in build/newest; of vLLM only its sources.
set -euo pipefail
cd "$(dirname "$0")/.."
newest=$PWD/build/newest
scripts/python_env.sh
python=$PWD/build/venv/bin/python
status=0

# FOLDER REQUIREMENT...: what is written in Python may be for a later Python, as in scripts/python_env.sh.
unpack() {
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --no-compile --target "$newest/$1" \
    "${@:2}"
}
version_in() { ls -d "$newest/$1/${2//-/_}"-*.dist-info | sed 's/.*-\(.*\)\.dist-info$/\1/'; }

rm -rf "$newest"
mkdir -p "$newest"
if ! unpack probe absl-py; then
  echo "newest-frameworks: not run: pip reaches no index"
  exit 0
fi
rm -r "$newest/probe"
for name in $(sed -n 's/==.*//p' python/requirements-frameworks.txt | sort -u); do
  if unpack part "$name" --python-version 3.12 --ignore-requires-python; then
    mv "$newest/part" "$newest/$name-$(version_in part "$name")"
  else
    echo "newest-frameworks: pip finds no $name" >&2
    rm -rf "$newest/part"
    status=1
  fi
done
# FOLDER PACKAGE...: with what they require beyond build/venv, which has torch.
together() {
  local -a found
  "$python" -m pip install --quiet --disable-pip-version-check --dry-run --only-binary=:all: --report "$newest/report" "${@:2}"
  mapfile -t found < <("$python" -c 'import json, sys
for one in json.load(open(sys.argv[1]))["install"]:
    print(one["metadata"]["name"] + "==" + one["metadata"]["version"])' "$newest/report")
  rm "$newest/report"
  unpack "$1" "${found[@]}"
}
together jax jax jaxlib orbax-checkpoint
together huggingface transformers accelerate
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$newest/wheel" vllm
"$python" -c 'import sys, zipfile; file = zipfile.ZipFile(sys.argv[1])
file.extractall(sys.argv[2], [name for name in file.namelist() if name.endswith((".py", "/METADATA"))])' \
  "$newest"/wheel/vllm-*.whl "$newest/vllm"
rm -r "$newest/wheel"

"$python" tests/python/interfaces.py "$newest"/* || status=1
cmake --preset python >build/python.configure.log
cmake --build build/python -j "$(nproc)" --target sealpoint_python ckpt
export PYTHONPATH=$PWD/build/python/python PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
export SEALPOINT_SOURCE_DIR=$PWD SEALPOINT_BINARY_DIR=$PWD/build/python SEALPOINT_NEWEST_FRAMEWORKS=$newest
for test in megatron megatron_bridge megatron_fsdp megatron_muon torchtitan lightning huggingface jax; do
  echo "== $test"
  "$python" -m pytest -q -ra -p no:cacheprovider "tests/python/test_$test.py" || status=1
done
exit $status
