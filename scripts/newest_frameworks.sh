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
names_in() { sed -n 's/==.*//p' "python/requirements-$1.txt" | sort -u; }
version_in() { ls -d "$newest/$1/${2//-/_}"-*.dist-info | sed 's/.*-\(.*\)\.dist-info$/\1/'; }

rm -rf "$newest"
mkdir -p "$newest"
if ! unpack probe absl-py; then
  echo "newest-frameworks: not run: pip reaches no index"
  exit 0
fi
rm -r "$newest/probe"
for name in $(names_in frameworks); do
  if unpack part "$name" --python-version 3.12 --ignore-requires-python; then
    mv "$newest/part" "$newest/$name-$(version_in part "$name")"
  else
    echo "newest-frameworks: pip finds no $name" >&2
    rm -rf "$newest/part"
    status=1
  fi
done
# shellcheck disable=SC2046
for together in jax huggingface; do unpack "$together" $(names_in "$together"); done
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
